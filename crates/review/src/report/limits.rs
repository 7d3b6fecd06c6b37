//! The caps of what is shown. What is cut says so.

/// Most characters of one text of a model.
pub const TEXT_CHARS_MAX: usize = 20_000;
/// Most characters of a title, a path, a name.
pub const NAME_CHARS_MAX: usize = 300;
/// Most characters of a line of code.
pub const LINE_CHARS_MAX: usize = 2_000;
/// Most lines of a fix.
pub const FIX_LINES_MAX: usize = 200;
/// Most results of a SARIF file: code scanning keeps no more of a run.
pub const SARIF_RESULTS_MAX: usize = 5_000;
/// Most annotations of one kind that GitHub shows of a step.
pub const GITHUB_EACH_MAX: usize = 10;
/// Most characters of the message of an annotation.
pub const GITHUB_MESSAGE_CHARS_MAX: usize = 4_000;
/// Most lines of one file in the page.
pub const PAGE_FILE_LINES_MAX: usize = 4_000;
/// Most lines of all files in the page.
pub const PAGE_LINES_MAX: usize = 20_000;
/// Most findings that were left out that the page lists.
pub const PAGE_LEFT_OUT_MAX: usize = 500;
/// Lines around a finding that the page shows unfolded.
pub const PAGE_CONTEXT_LINES: u32 = 6;
/// Fewer lines than these are not worth folding.
pub const PAGE_FOLD_LINES_MIN: usize = 8;

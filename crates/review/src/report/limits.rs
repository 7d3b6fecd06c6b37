//! The limits of reports. Truncation is always visible.

/// Maximum length of a text that a model wrote.
pub const TEXT_CHARS_MAX: usize = 20_000;
/// Maximum length of a title, a path or a name.
pub const NAME_CHARS_MAX: usize = 300;
/// Maximum length of a line of code.
pub const LINE_CHARS_MAX: usize = 2_000;
/// Maximum number of lines in a fix.
pub const FIX_LINES_MAX: usize = 200;
/// Maximum number of results in a SARIF file. Code scanning accepts no more per run.
pub const SARIF_RESULTS_MAX: usize = 5_000;
/// Maximum number of annotations of one level that GitHub shows per step.
pub const GITHUB_EACH_MAX: usize = 10;
/// Maximum length of an annotation's message.
pub const GITHUB_MESSAGE_CHARS_MAX: usize = 4_000;
/// Maximum number of lines per file in the page.
pub const PAGE_FILE_LINES_MAX: usize = 4_000;
/// Maximum number of lines of all files in the page.
pub const PAGE_LINES_MAX: usize = 20_000;
/// Maximum number of left-out findings in the page.
pub const PAGE_LEFT_OUT_MAX: usize = 500;
/// Number of lines on both sides of a finding that the page does not fold.
pub const PAGE_CONTEXT_LINES: u32 = 6;
/// Minimum number of lines that the page folds.
pub const PAGE_FOLD_LINES_MIN: usize = 8;

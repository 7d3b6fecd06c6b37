//! The caps on reviews.

use std::time::Duration;

/// Maximum number of tasks or files named in one sentence.
pub const NAMES_SHOWN: usize = 10;

/// Maximum number of findings in one answer.
pub const REVIEW_ANSWER_FINDINGS_MAX: usize = 100;

/// Maximum number of findings of one gap-finding agent.
pub const REVIEW_GAPS_FINDINGS_MAX: usize = 5;

/// Lines on both sides of a known finding that gap-finding agents skip.
pub const REVIEW_ZONE_LINES: u32 = 5;

/// Maximum number of lines of a suggested fix.
pub const REVIEW_FIX_LINES_MAX: usize = 10;

/// Maximum number of characters of a finding's title.
pub const REVIEW_TITLE_CHARS_MAX: usize = 200;

/// Maximum number of characters of a finding's text.
pub const REVIEW_TEXT_CHARS_MAX: usize = 4_000;

/// Maximum number of findings given to one validator.
pub const REVIEW_BATCH_FINDINGS_MAX: usize = 8;

/// Maximum number of validators; findings beyond that stay unverified.
pub const REVIEW_BATCHES_MAX: usize = 60;

/// Maximum length of a code line in a prompt; longer ones are cut with a note of how much is
/// missing.
pub const REVIEW_PROMPT_LINE_CHARS_MAX: usize = 4_000;

/// Maximum number of findings of each side given to the synthesis.
pub const REVIEW_SYNTHESIS_FINDINGS_MAX: usize = 40;

/// Lines of code on both sides of a finding given to a validator.
pub const REVIEW_CONTEXT_LINES: u32 = 5;

/// Lines of code on both sides of a finding in a report.
pub const REVIEW_EXCERPT_LINES: u32 = 2;

/// Maximum number of lines of an excerpt in a report.
pub const REVIEW_EXCERPT_LINES_MAX: usize = 12;

/// Maximum number of characters of an excerpt line in a prompt or a report.
pub const REVIEW_LINE_CHARS_MAX: usize = 500;

/// Maximum size of a stored review.
pub const REVIEW_RECORD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum number of progress notes of a review that are recorded in one transaction. A note is at most two events.
pub const RECORDED_AT_ONCE_MAX: usize = 100;

/// The pauses between the attempts to store the last events of a review.
pub const RECORD_RETRY_PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

/// Maximum number of reviews in a list.
pub const REVIEWS_LISTED_MAX: usize = 1_000;

/// Maximum number of files in a review.
pub const REVIEW_FILES_MAX: usize = 2_000;

/// Maximum size of all files of a review together.
pub const REVIEW_BYTES_MAX: u64 = 16_000_000;

/// Maximum size of a reviewed file.
pub const REVIEW_FILE_BYTES_MAX: u64 = 1_000_000;

/// Maximum number of reviewed lines per file: changed lines with their context, or all lines of a
/// new file.
pub const REVIEW_FILE_LINES_MAX: usize = 5_000;

/// Maximum number of characters of files that prompts contain in full.
pub const REVIEW_FULL_CHARS_MAX: usize = 200_000;

/// Number of lines shown of each file beyond that.
pub const REVIEW_PREVIEW_LINES: usize = 50;

/// Number of files from which on a folder is reported as too large for one review.
pub const REVIEW_FOLDER_FILES_WARN: usize = 20;

/// Maximum size of the files compared in one git call.
pub const REVIEW_PATCH_BYTES_MAX: u64 = 4_000_000;

/// Maximum number of files visited in a folder outside a repository.
pub const REVIEW_WALK_FILES_MAX: usize = 5_000;

/// Maximum depth of the walk through a folder outside a repository.
pub const REVIEW_WALK_DEPTH_MAX: usize = 32;

/// Maximum number of rule files of a repository.
pub const REVIEW_RULE_FILES_MAX: usize = 20;

/// Maximum size of a rule file.
pub const REVIEW_RULE_BYTES_MAX: u64 = 1_000_000;

/// Maximum number of characters kept of one rule file.
pub const REVIEW_RULE_CHARS_MAX: usize = 20_000;

/// Maximum number of characters kept of all rule files.
pub const REVIEW_RULES_CHARS_MAX: usize = 60_000;

/// Maximum number of configuration files of a review.
pub const REVIEW_BASE_FILES_MAX: usize = 50;

/// Maximum size of a configuration file of a review.
pub const REVIEW_BASE_FILE_BYTES_MAX: u64 = 256 * 1024;

/// Maximum number of tests shown because their names match a reviewed file.
pub const REVIEW_TESTS_MAX: usize = 20;

/// Maximum number of such tests per reviewed file.
pub const REVIEW_TESTS_EACH_MAX: usize = 3;

/// Maximum size of a test file that is shown.
pub const REVIEW_TEST_BYTES_MAX: u64 = 1_000_000;

/// Maximum number of characters shown of a test file.
pub const REVIEW_TEST_CHARS_MAX: usize = 20_000;

/// Number of similar branch names suggested when a branch does not exist.
pub const REVIEW_NEAR_BRANCHES: usize = 3;

/// Maximum number of patterns in a review.
pub const REVIEW_PATTERNS_MAX: usize = 2_000;

/// Maximum length of a pattern.
pub const REVIEW_PATTERN_BYTES_MAX: usize = 4_096;

/// Maximum number of characters of a pattern with its repetitions expanded.
pub const REVIEW_PATTERN_POSITIONS_MAX: usize = 2_000;

/// Maximum number of patterns without a literal part, since these run on every file.
pub const REVIEW_PATTERNS_EVERYWHERE_MAX: usize = 200;

/// Maximum compiled size of a pattern.
pub const REVIEW_PATTERN_COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// Maximum size of a pattern's lazy DFA cache.
pub const REVIEW_PATTERN_DFA_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Maximum number of matches listed per pattern and file.
pub const REVIEW_HITS_PER_FILE_MAX: usize = 10_000;

/// Maximum number of lines of a match that confirms an agent's finding.
pub const REVIEW_CLAIM_LINES_MAX: u32 = 10;

/// Number of lines searched at once by a pattern that can match a line break.
pub const REVIEW_PATTERN_WINDOW_LINES: usize = 40;

/// Number of lines searched at once by any other pattern.
pub const REVIEW_PATTERN_CHUNK_LINES: usize = 1_000;

/// Maximum number of matches of a pattern that start in one line.
pub const REVIEW_PATTERN_LINE_MATCHES_MAX: usize = 16;

/// Maximum size of a baseline review.
pub const REVIEW_BASELINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum number of entries in an ignore file.
pub const REVIEW_IGNORES_MAX: usize = 1_000;

/// Maximum number of a finding's lines that are searched for a suppression comment.
pub const REVIEW_SUPPRESSION_LINES_MAX: u32 = 10;

/// Number of lines at the top of a file in which a suppression comment applies to the whole file.
pub const REVIEW_SUPPRESSION_HEAD_LINES: usize = 10;

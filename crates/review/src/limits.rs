//! The caps on reviews.

/// Tasks or files that one sentence names.
pub const NAMES_SHOWN: usize = 10;

/// Most findings of one answer.
pub const REVIEW_ANSWER_FINDINGS_MAX: usize = 100;

/// Most findings of one agent that looks for gaps.
pub const REVIEW_GAPS_FINDINGS_MAX: usize = 5;

/// Lines on both sides of a finding where others are not looked for again.
pub const REVIEW_ZONE_LINES: u32 = 5;

/// Longest diff that is a fix.
pub const REVIEW_FIX_LINES_MAX: usize = 10;

/// Longest title.
pub const REVIEW_TITLE_CHARS_MAX: usize = 200;

/// Longest text of a finding.
pub const REVIEW_TEXT_CHARS_MAX: usize = 4_000;

/// Most findings that one validator is asked about.
pub const REVIEW_BATCH_FINDINGS_MAX: usize = 8;

/// Most validators that are asked; what is beyond stays unverified.
pub const REVIEW_BATCHES_MAX: usize = 60;

/// Longest line of code that a prompt shows; longer ones say how much is missing.
pub const REVIEW_PROMPT_LINE_CHARS_MAX: usize = 4_000;

/// Most findings of each side that a synthesis is told.
pub const REVIEW_SYNTHESIS_FINDINGS_MAX: usize = 40;

/// Lines of code on both sides of a finding that a validator is shown.
pub const REVIEW_CONTEXT_LINES: u32 = 5;

/// Lines on both sides of a finding that a report shows.
pub const REVIEW_EXCERPT_LINES: u32 = 2;

/// Most lines of a report's excerpt.
pub const REVIEW_EXCERPT_LINES_MAX: usize = 12;

/// Longest line that goes into a prompt or a report.
pub const REVIEW_LINE_CHARS_MAX: usize = 500;

/// Largest record of a review that is read.
pub const REVIEW_RECORD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most reviews that a list shows.
pub const REVIEWS_LISTED_MAX: usize = 1_000;

/// Most files of one review.
pub const REVIEW_FILES_MAX: usize = 2_000;

/// Most bytes of all files of one review.
pub const REVIEW_BYTES_MAX: u64 = 16_000_000;

/// Largest file that is reviewed.
pub const REVIEW_FILE_BYTES_MAX: u64 = 1_000_000;

/// Most lines of one file that are reviewed: those that changed and those next to them, or all of a new one.
pub const REVIEW_FILE_LINES_MAX: usize = 5_000;

/// Most characters of files that go into prompts as a whole.
pub const REVIEW_FULL_CHARS_MAX: usize = 200_000;

/// Lines of the files beyond that.
pub const REVIEW_PREVIEW_LINES: usize = 50;

/// From how many files on a folder is more than one review should be about.
pub const REVIEW_FOLDER_FILES_WARN: usize = 20;

/// Most bytes of files that are compared in one call of git.
pub const REVIEW_PATCH_BYTES_MAX: u64 = 4_000_000;

/// Most files of a folder outside a repository that are looked at.
pub const REVIEW_WALK_FILES_MAX: usize = 5_000;

/// How deep a folder outside a repository is looked into.
pub const REVIEW_WALK_DEPTH_MAX: usize = 32;

/// Most files with rules of a repository.
pub const REVIEW_RULE_FILES_MAX: usize = 20;

/// Largest file with rules that is read.
pub const REVIEW_RULE_BYTES_MAX: u64 = 1_000_000;

/// Most characters of one that are kept.
pub const REVIEW_RULE_CHARS_MAX: usize = 20_000;

/// Most characters of rules that are kept.
pub const REVIEW_RULES_CHARS_MAX: usize = 60_000;

/// Most files of a review's configuration.
pub const REVIEW_BASE_FILES_MAX: usize = 50;

/// Largest file of a review's configuration.
pub const REVIEW_BASE_FILE_BYTES_MAX: u64 = 256 * 1024;

/// Most tests that are shown because their names fit.
pub const REVIEW_TESTS_MAX: usize = 20;

/// Most tests of one file.
pub const REVIEW_TESTS_EACH_MAX: usize = 3;

/// Largest test that is shown.
pub const REVIEW_TEST_BYTES_MAX: u64 = 1_000_000;

/// Most characters of one.
pub const REVIEW_TEST_CHARS_MAX: usize = 20_000;

/// Names of branches that a message about a wrong one shows.
pub const REVIEW_NEAR_BRANCHES: usize = 3;

/// Most patterns of one review.
pub const REVIEW_PATTERNS_MAX: usize = 2_000;

/// Longest pattern.
pub const REVIEW_PATTERN_BYTES_MAX: usize = 4_096;

/// Most characters of a pattern with its repetitions written out.
pub const REVIEW_PATTERN_POSITIONS_MAX: usize = 2_000;

/// Most patterns without a fixed text: they are run on every file.
pub const REVIEW_PATTERNS_EVERYWHERE_MAX: usize = 200;

/// Largest pattern when it is compiled.
pub const REVIEW_PATTERN_COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// Most memory of a pattern while it runs.
pub const REVIEW_PATTERN_DFA_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Most places of one pattern in one file that are listed.
pub const REVIEW_HITS_PER_FILE_MAX: usize = 10_000;

/// Most lines of a match that proves what an agent claims.
pub const REVIEW_CLAIM_LINES_MAX: u32 = 10;

/// Lines that a pattern which may match a line break is run on at once.
pub const REVIEW_PATTERN_WINDOW_LINES: usize = 40;

/// Lines that any other pattern is run on at once.
pub const REVIEW_PATTERN_CHUNK_LINES: usize = 1_000;

/// Most matches of a pattern that begin in one line.
pub const REVIEW_PATTERN_LINE_MATCHES_MAX: usize = 16;

/// Largest earlier review that is read.
pub const REVIEW_BASELINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most entries of a file that says what is not to be reported.
pub const REVIEW_IGNORES_MAX: usize = 1_000;

/// Lines of a finding in which a comment is looked for that it is meant so.
pub const REVIEW_SUPPRESSION_LINES_MAX: u32 = 10;

/// Lines at the top of a file in which a comment is about the whole of it.
pub const REVIEW_SUPPRESSION_HEAD_LINES: usize = 10;

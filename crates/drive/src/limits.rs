//! The limits of this crate: sizes, counts and timeouts.

use std::time::Duration;

/// Maximum size of a conversation file.
pub const CONVERSATION_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum size of an event log whose last events are read.
pub const LOG_TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of characters of the first prompt in a list of conversations.
pub const FIRST_WORDS_CHARS_MAX: usize = 200;
/// Maximum number of characters of an interrupted run's answer that are passed to the next run.
pub const INTERRUPTED_CHARS_MAX: usize = 4_000;
/// Maximum number of an interrupted run's tool calls that are passed to the next run.
pub const INTERRUPTED_CALLS_MAX: usize = 20;
/// Maximum size of the file of skill use counts.
pub const USE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of skills in the file of skill use counts; the least used ones are dropped.
pub const USE_SKILLS_MAX: usize = 2_000;

/// Maximum size of a workflow run's state file.
pub const RUN_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum size of the workflow stored with a run, including all injected content.
pub const WORKFLOW_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Timeout for the lock of a workflow run.
pub const RUN_LOCK_WAIT: Duration = Duration::from_secs(20);
/// Interval between attempts to take the lock of a workflow run.
pub const RUN_LOCK_POLL: Duration = Duration::from_millis(2);
/// Age after which a run that was never fully created is considered abandoned.
pub const NEW_RUN_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// Timeout of a workflow's declared check.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Timeout of a script that prints a step.
pub const SCRIPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between SIGTERM and SIGKILL for programs that the engine runs.
pub const PROGRAM_GRACE: Duration = Duration::from_secs(5);
/// Maximum number of bytes kept of each output stream of a program.
pub const PROGRAM_OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// Maximum size of a file read by a workflow's built-in checks.
pub const CHECKED_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of bytes of each output stream in the record of a check.
pub const CHECK_NOTE_BYTES_MAX: usize = 2 * 1024;

/// Minimum git version: needs `merge-tree --write-tree`, `--pathspec-from-file`, and worktree locks
/// with a reason.
pub const GIT_VERSION_MIN: (u32, u32) = (2, 41);
/// Timeout of a git call. Long, since a checkout of a large repository takes minutes.
pub const GIT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Timeout of a git call that reads configuration.
pub const GIT_CONFIG_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between SIGTERM and SIGKILL for git.
pub const GIT_GRACE: Duration = Duration::from_secs(5);
/// Maximum number of bytes read from git's standard output.
pub const GIT_OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of bytes of git's standard error in an error message.
pub const GIT_SAID_BYTES_MAX: usize = 2 * 1024;
/// Maximum size of an index that is searched for submodules; for a larger one, git lists them.
pub const GIT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum size of `objects/info/alternates`.
pub const GIT_ALTERNATES_BYTES_MAX: u64 = 64 * 1024;
/// Maximum number of repositories that a repository borrows objects from.
pub const GIT_ALTERNATES_MAX: usize = 16;
/// Maximum size of the `shallow` file, which lists commits whose parents were not fetched.
pub const GIT_SHALLOW_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of attempts to change the configuration while another process holds its lock.
pub const GIT_CONFIG_TRIES: u32 = 40;
/// Pause between these attempts.
pub const GIT_CONFIG_POLL: Duration = Duration::from_millis(50);
/// Maximum number of commits returned by `git log`.
pub const LOG_COMMITS_MAX: usize = 10_000;

/// Maximum number of characters of a run's name in the name of its branch.
pub const WORKTREE_NAME_CHARS_MAX: usize = 40;
/// Timeout for the worktree lock. Long, since its holder may be checking out a large repository.
pub const WORKTREE_LOCK_WAIT: Duration = Duration::from_secs(10 * 60);
/// Timeout for a former owner's processes to leave a worktree; after that, a takeover fails.
pub const WORKTREE_FREE_WAIT: Duration = Duration::from_secs(3);
/// Interval between attempts to take the worktree lock.
pub const WORKTREE_LOCK_POLL: Duration = Duration::from_millis(20);
/// Timeout for a git process in a worktree to end.
pub const AT_WORK_WAIT: Duration = Duration::from_secs(2);
/// Interval between checks for such a git process.
pub const AT_WORK_POLL: Duration = Duration::from_millis(50);
/// Maximum size of a worktree's owner file, and of its `gitdir` file.
pub const OWNER_BYTES_MAX: u64 = 64 * 1024;
/// Maximum size of the reflog of `HEAD`.
pub const REFLOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum number of names tried for a folder that is moved aside or a rescue branch.
pub const ASIDE_NAMES_MAX: usize = 100;
/// Maximum number of nested repositories whose git folder is moved out of a worktree after a step.
pub const NESTED_REPOSITORIES_MAX: usize = 20;
/// Maximum size of a file copied into a new worktree.
pub const COPY_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum number of bytes copied into a new worktree.
pub const COPY_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum number of files copied into a new worktree.
pub const COPY_FILES_MAX: usize = 1_000;

/// Maximum number of declared checks.
pub const CHECKS_MAX: usize = 200;
/// Maximum length of a check's name.
pub const CHECK_NAME_BYTES_MAX: usize = 100;
/// Maximum number of retries of a check.
pub const CHECK_RETRIES_MAX: u32 = 10;
/// Maximum timeout that a check may declare.
pub const CHECK_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum length of a check's command.
pub const CHECK_COMMAND_BYTES_MAX: usize = 100_000;
/// Maximum number of bytes stored of the start of a check's output.
pub const CHECK_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of bytes stored of the end of a check's output.
pub const CHECK_TAIL_BYTES_MAX: usize = 48 * 1024;
/// Maximum number of bytes of each end of a check's output that are analysed for errors. Both ends
/// and the note about the gap between them fit into [`ANALYSED_BYTES_MAX`].
pub const CHECK_HEARD_BYTES_MAX: usize = ANALYSED_BYTES_MAX / 2 - 1024;
/// Maximum number of lines kept from the middle of a check's output because they look like errors.
pub const CHECK_TELLING_LINES_MAX: usize = 40;
/// Maximum length of such a line.
pub const CHECK_TELLING_CHARS_MAX: usize = 400;
/// Maximum number of bytes about failed checks in a prompt.
pub const CHECK_NOTES_BYTES_MAX: usize = 16 * 1024;
/// Minimum number of bytes for each failed check that a prompt describes.
pub const CHECK_NOTES_EACH_BYTES_MIN: usize = 2 * 1024;
/// Maximum number of characters of a failed check's command in a prompt.
pub const CHECK_NOTES_COMMAND_CHARS_MAX: usize = 1_000;

/// Number of past steps of a plan run that the watchdog compares.
pub const HISTORY_MAX: usize = 64;
/// Consecutive interrupted steps (the worker died) on one task before the run waits for a person.
pub const INTERRUPTIONS_MAX: u32 = 5;
/// Maximum number of tasks or files named in one sentence.
pub const NAMES_SHOWN: usize = 10;
/// Maximum number of characters of a task's label in the journal.
pub const TASK_LABEL_CHARS_MAX: usize = 200;
/// Maximum number of characters of one learning.
pub const LEARNING_CHARS_MAX: usize = 600;
/// Maximum number of events recorded at once after a plan file was edited by hand.
pub const PLAN_EVENTS_MAX: usize = 500;
/// Maximum number of findings kept of a review.
pub const FINDINGS_MAX: usize = 50;
/// Maximum number of characters of a finding.
pub const FINDING_CHARS_MAX: usize = 2_000;
/// Maximum number of reasons recorded for a selected skill.
pub const REASONS_SHOWN: usize = 3;
/// Maximum number of characters of notes in a prompt.
pub const NOTES_CHARS_MAX: usize = 12_000;
/// Maximum number of characters of a diff in a prompt.
pub const DIFF_CHARS_MAX: usize = 40_000;
/// Maximum number of learnings in a prompt.
pub const LEARNINGS_SHOWN: usize = 20;
/// Interval at which a worker polls for requests to pause, stop or change a run.
pub const WISH_POLL: Duration = Duration::from_secs(1);
/// Maximum size of the log of one agent step.
pub const STEP_LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum size of the file of learnings.
pub const LEARNINGS_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of bytes of the diff stored with a run.
pub const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Default deferral of a run after a rate limit that names no reset time.
pub const DEFERRAL: Duration = Duration::from_secs(15 * 60);
/// Maximum number of characters of a step's output in the journal.
pub const RESULT_CHARS_MAX: usize = 4_000;
/// Interval at which a worker polls the queue when it gets no notification.
pub const CLAIM_POLL: Duration = Duration::from_secs(2);
/// Pause of a worker after it could not reach the journal.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(3);

// Reviews

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

// Self-improvement

/// Maximum number of bytes of a command's output that are analysed: half from its start, half from
/// its end.
pub const ANALYSED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum analysed length of an output line; the rest of the line is ignored.
pub const ANALYSED_LINE_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of errors in one analysis; the rest is reported as cut.
pub const ANALYSED_ERRORS_MAX: usize = 1_000;
/// Maximum number of characters of an error's message.
pub const ERROR_MESSAGE_CHARS_MAX: usize = 2_000;
/// Maximum number of lines of an error's message.
pub const ERROR_MESSAGE_LINES_MAX: usize = 20;
/// Lines of source code shown on each side of an error.
pub const ERROR_CONTEXT_LINES: usize = 3;
/// Maximum number of characters of such a line.
pub const ERROR_CONTEXT_CHARS_MAX: usize = 240;
/// Maximum number of files read for the context of one analysis.
pub const ERROR_CONTEXT_FILES_MAX: usize = 50;
/// Number of last lines shown of an output that no parser understood.
pub const UNKNOWN_LINES_SHOWN: usize = 20;
/// Errors of one file that are at most this many lines apart are grouped.
pub const NEIGHBOURING_LINES: u32 = 5;

// GitHub

/// Maximum number of characters of a comment that we post, folded sections included. GitHub's own
/// limit is 65,536.
pub const COMMENT_CHARS_MAX: usize = 60_000;
/// Maximum number of characters of a pull request's body.
pub const PULL_BODY_CHARS_MAX: usize = 30_000;
/// Maximum number of characters of a pull request's title.
pub const PULL_TITLE_CHARS_MAX: usize = 120;
/// Maximum number of tasks read from one source, and that a mode may request for one run.
pub const TASKS_MAX: usize = 1_000;
/// Maximum size of a task file.
pub const TASKS_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of characters of a task's title.
pub const TASK_TITLE_CHARS_MAX: usize = 300;
/// Maximum number of characters of a task's text.
pub const TASK_BODY_CHARS_MAX: usize = 40_000;
/// Maximum number of characters of an agent's answer that become the question of a dead letter.
pub const LETTER_QUESTION_CHARS_MAX: usize = 1_000;
/// Default time for which the in-progress label of a run blocks other runs: the longest time that a
/// job on GitHub may take.
pub const CLAIM_LEASE: Duration = Duration::from_secs(6 * 60 * 60);
/// Maximum pause between tasks that a mode may request.
pub const DELAY_MS_MAX: u64 = 60 * 60 * 1_000;
/// Maximum number of comments of a thread in a prompt.
pub const THREAD_COMMENTS_MAX: usize = 50;
/// Maximum number of authors of a thread whose permissions are looked up.
pub const THREAD_AUTHORS_MAX: usize = 10;
/// Maximum number of bytes of a pull request's diff in a prompt.
pub const PROMPT_DIFF_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of remembered fixes in a prompt.
pub const OFFERS_SHOWN: usize = 3;
/// Maximum number of characters of such a fix.
pub const OFFER_CHARS_MAX: usize = 3_000;
/// Maximum size of a file from which the lines around an error are read.
pub const CONTEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum number of symbolic links followed to find a file.
pub const LINK_STEPS_MAX: usize = 8;

/// Maximum length of a symbolic link's target.
pub const LINK_BYTES_MAX: u64 = 4_096;
// Memory and recovery

/// Maximum size of the memory file.
pub const MEMORY_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum number of failures in the memory file.
pub const MEMORY_FAILURES_MAX: usize = 5_000;
/// Maximum number of remembered failures that are compared with a new one.
pub const MEMORY_COMPARED_MAX: u32 = 500;
/// Maximum number of similar failures shown.
pub const MEMORY_SIMILAR_MAX: usize = 3;
/// Maximum number of different failures remembered per verification.
pub const RECOVER_FAILURES_MAX: usize = 50;
/// Maximum number of recovery attempts per failure.
pub const RECOVER_ATTEMPTS_MAX: u32 = 3;
/// Maximum number of recovery attempts in total.
pub const RECOVER_ATTEMPTS_TOTAL_MAX: u32 = 6;
/// Number of ineffective fixes after which a failure is assumed to have a different cause.
pub const RECOVER_WITHOUT_EFFECT_MAX: u32 = 2;
/// Timeout of one recovery attempt, not counting the checks.
pub const RECOVER_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum time to wait for a rate limit; for a longer one the run is deferred.
pub const RECOVER_WAIT_MAX: Duration = Duration::from_secs(120);
/// Default wait for a rate limit that names no time.
pub const RECOVER_WAIT_USUAL: Duration = Duration::from_secs(60);
/// Maximum time to defer a run for a rate limit; a longer one needs a person.
pub const RECOVER_DEFERRAL_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// Number of deferred or interrupted recoveries after one agent step before the agent runs again
/// regardless.
pub const RECOVER_CUT_SHORT_MAX: usize = 3;
/// Maximum length of the file names passed to a linter.
pub const LINTER_FILES_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of lines that a linter may change.
pub const LINTER_LINES_MAX: u64 = 200;
/// Maximum number of lines of a lock file that a fix may change.
pub const LOCK_LINES_MAX: u64 = 100;
/// Maximum size of a recovery's diff; a larger change is reverted.
pub const RECOVER_DIFF_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of lines of a change that is learnt.
pub const LEARNT_LINES_MAX: usize = 60;
/// Maximum number of files of a change that is learnt.
pub const LEARNT_FILES_MAX: usize = 5;
/// Maximum number of output bytes kept of a program that recovery runs.
pub const RECOVER_SAID_BYTES_MAX: usize = 16 * 1024;
/// Default number of checks of a verification that run concurrently.
pub const CHECKS_AT_ONCE: usize = 3;
/// Minimum percentage of an earlier run's tests that must run again for a pass to be trusted.
pub const TESTS_PERCENT_MIN: u64 = 75;
/// Maximum size of a stored verification.
pub const VERIFICATION_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Maximum number of errors per check listed in a report; the rest is counted.
pub const REPORT_ERRORS_SHOWN: usize = 50;
/// Maximum size of a project file from which the lines around an error are read.
pub const ERROR_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Interval at which pending checks are polled.
pub const MERGE_POLL: Duration = Duration::from_secs(10);
/// Timeout for the first check of a merged commit to appear.
pub const MERGE_WATCH_APPEAR: Duration = Duration::from_secs(60);
/// Maximum number of pull requests examined when no event names one.
pub const MERGE_PULLS_MAX: usize = 20;
/// Maximum length of the line that records a pull request's origin.
pub const ORIGIN_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of times a merge restarts because the head moved.
pub const MERGE_RESTARTS_MAX: u32 = 3;

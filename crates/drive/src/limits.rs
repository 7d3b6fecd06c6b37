//! The caps of this crate.

use std::time::Duration;

/// Largest conversation that is read.
pub const CONVERSATION_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Largest log of events of which the end is looked at.
pub const LOG_TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Characters of the first prompt that a list shows.
pub const FIRST_WORDS_CHARS_MAX: usize = 200;
/// Characters of what an interrupted run had said that the next one is told.
pub const INTERRUPTED_CHARS_MAX: usize = 4_000;
/// Calls of an interrupted run that the next one is told.
pub const INTERRUPTED_CALLS_MAX: usize = 20;
/// Largest count of uses that is read.
pub const USE_BYTES_MAX: u64 = 1024 * 1024;
/// Skills whose uses are counted.
pub const USE_SKILLS_MAX: usize = 2_000;

/// Largest state of a run of a workflow.
pub const RUN_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Largest workflow that a run was started with, with all that it injects.
pub const WORKFLOW_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long a change waits for another one to the same run.
pub const RUN_LOCK_WAIT: Duration = Duration::from_secs(20);
/// How often it looks.
pub const RUN_LOCK_POLL: Duration = Duration::from_millis(2);
/// After how long a run that was never started in full is taken for left.
pub const NEW_RUN_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// How long a declared check of a workflow may take.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// How long a script may take to print a step.
pub const SCRIPT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long programs have to end after they were asked to.
pub const PROGRAM_GRACE: Duration = Duration::from_secs(5);
/// Most of what a program says that is kept, of each stream.
pub const PROGRAM_OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// The largest file that a built-in check of a workflow reads.
pub const CHECKED_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most of each stream that goes into the record of a check.
pub const CHECK_NOTE_BYTES_MAX: usize = 2 * 1024;

/// The oldest git that will do: `merge-tree` without a checkout, paths from a file, and locks with a reason.
pub const GIT_VERSION_MIN: (u32, u32) = (2, 41);
/// How long a call of git may take: a checkout of a large repository does.
pub const GIT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Longest time that git may take to read configuration.
pub const GIT_CONFIG_TIMEOUT: Duration = Duration::from_secs(10);
/// How long git has to end after it was asked to.
pub const GIT_GRACE: Duration = Duration::from_secs(5);
/// Most of what git says that is read.
pub const GIT_OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most of git's complaints that go into an error.
pub const GIT_SAID_BYTES_MAX: usize = 2 * 1024;
/// The largest index that is searched for submodules; git is asked about a larger one.
pub const GIT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The largest list of repositories that another one borrows objects from.
pub const GIT_ALTERNATES_BYTES_MAX: u64 = 64 * 1024;
/// The maximum number of repositories that another one borrows objects from.
pub const GIT_ALTERNATES_MAX: usize = 16;
/// The largest list of commits whose history was not fetched.
pub const GIT_SHALLOW_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How often a change to the configuration is tried while another process makes one.
pub const GIT_CONFIG_TRIES: u32 = 40;
/// How long it waits in between.
pub const GIT_CONFIG_POLL: Duration = Duration::from_millis(50);
/// Most commits of a log.
pub const LOG_COMMITS_MAX: usize = 10_000;

/// Most characters of a run's name in the name of its branch.
pub const WORKTREE_NAME_CHARS_MAX: usize = 40;
/// How long a change to worktrees waits for another one: a checkout may take its time.
pub const WORKTREE_LOCK_WAIT: Duration = Duration::from_secs(10 * 60);
/// How long processes of a former owner have to leave a worktree before taking it over fails.
pub const WORKTREE_FREE_WAIT: Duration = Duration::from_secs(3);
/// How often it looks.
pub const WORKTREE_LOCK_POLL: Duration = Duration::from_millis(20);
/// How long a git that works in a worktree has to end before it is in the way.
pub const AT_WORK_WAIT: Duration = Duration::from_secs(2);
/// How often it is looked for.
pub const AT_WORK_POLL: Duration = Duration::from_millis(50);
/// Largest file that says whose a worktree is, or where.
pub const OWNER_BYTES_MAX: u64 = 64 * 1024;
/// Largest log of what was checked out that is read.
pub const REFLOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most names that are tried for what is moved aside or rescued.
pub const ASIDE_NAMES_MAX: usize = 100;
/// Most repositories within a worktree that are opened up after a step.
pub const NESTED_REPOSITORIES_MAX: usize = 20;
/// Largest file that is copied into a new worktree.
pub const COPY_FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most bytes that are copied into a new worktree.
pub const COPY_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Most files that are copied into a new worktree.
pub const COPY_FILES_MAX: usize = 1_000;

/// Most checks that are declared together.
pub const CHECKS_MAX: usize = 200;
/// Longest name of a check.
pub const CHECK_NAME_BYTES_MAX: usize = 100;
/// Most attempts of a check after the first one.
pub const CHECK_RETRIES_MAX: u32 = 10;
/// The longest time that a check may be given.
pub const CHECK_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest command of a check.
pub const CHECK_COMMAND_BYTES_MAX: usize = 100_000;
/// Most of the start of a check's output that is stored.
pub const CHECK_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most of the end of a check's output that is stored.
pub const CHECK_TAIL_BYTES_MAX: usize = 48 * 1024;
/// Most of each end of a check's output that errors are read from. Both together are what is analysed, with a word on what
/// is missing between them.
pub const CHECK_HEARD_BYTES_MAX: usize = ANALYSED_BYTES_MAX / 2 - 1024;
/// Most lines of a check's output that are kept because they look like errors.
pub const CHECK_TELLING_LINES_MAX: usize = 40;
/// Most of such a line.
pub const CHECK_TELLING_CHARS_MAX: usize = 400;
/// Most of what a prompt is told about failed checks.
pub const CHECK_NOTES_BYTES_MAX: usize = 16 * 1024;
/// The least that is told about a failed check, if anything is.
pub const CHECK_NOTES_EACH_BYTES_MIN: usize = 2 * 1024;
/// Most characters of a failed check's command that are told.
pub const CHECK_NOTES_COMMAND_CHARS_MAX: usize = 1_000;

/// Steps of a plan loop that are remembered for the watchdog.
pub const HISTORY_MAX: usize = 64;
/// Steps in a row on one task whose worker was gone before a person has to look.
pub const INTERRUPTIONS_MAX: u32 = 5;
/// Tasks or files that one sentence names.
pub const NAMES_SHOWN: usize = 10;
/// Most characters of a task in the journal.
pub const TASK_LABEL_CHARS_MAX: usize = 200;
/// Most characters of one thing that was learnt.
pub const LEARNING_CHARS_MAX: usize = 600;
/// Most events that are recorded at once when a plan was changed by hand.
pub const PLAN_EVENTS_MAX: usize = 500;
/// Most findings of a review that are kept.
pub const FINDINGS_MAX: usize = 50;
/// Most characters of one.
pub const FINDING_CHARS_MAX: usize = 2_000;
/// Reasons for a skill that are recorded.
pub const REASONS_SHOWN: usize = 3;
/// Most characters of notes in a prompt.
pub const NOTES_CHARS_MAX: usize = 12_000;
/// Most characters of a difference in a prompt.
pub const DIFF_CHARS_MAX: usize = 40_000;
/// Learnings that a prompt shows.
pub const LEARNINGS_SHOWN: usize = 20;
/// How often a worker looks for what people want of a run.
pub const WISH_POLL: Duration = Duration::from_secs(1);
/// Largest log of one step of an agent.
pub const STEP_LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Largest file of learnings.
pub const LEARNINGS_BYTES_MAX: u64 = 256 * 1024;
/// Most of a difference that is kept with a run.
pub const DIFF_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long to wait for an allowance when nobody says until when.
pub const DEFERRAL: Duration = Duration::from_secs(15 * 60);
/// How long the output of a step may be in the journal.
pub const RESULT_CHARS_MAX: usize = 4_000;
/// How often a worker looks for runs when nobody calls it.
pub const CLAIM_POLL: Duration = Duration::from_secs(2);
/// How long it waits after the journal could not be reached.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(3);

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
// Reviews

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

// Self-improvement

/// Most bytes of a command's output that are analysed: half from its start and half from its end.
pub const ANALYSED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest line of it; what is beyond is not looked at.
pub const ANALYSED_LINE_BYTES_MAX: usize = 4 * 1024;
/// Most errors of one analysis; what is beyond is said to be cut.
pub const ANALYSED_ERRORS_MAX: usize = 1_000;
/// Longest message of an error.
pub const ERROR_MESSAGE_CHARS_MAX: usize = 2_000;
/// Most lines of a message that goes on.
pub const ERROR_MESSAGE_LINES_MAX: usize = 20;
/// Lines of a file on each side of an error.
pub const ERROR_CONTEXT_LINES: usize = 3;
/// Longest of them.
pub const ERROR_CONTEXT_CHARS_MAX: usize = 240;
/// Most files that are read for one analysis.
pub const ERROR_CONTEXT_FILES_MAX: usize = 50;
/// Last lines of output in which nothing was understood.
pub const UNKNOWN_LINES_SHOWN: usize = 20;
/// Lines between two errors of one file that are taken for neighbours.
pub const NEIGHBOURING_LINES: u32 = 5;

// GitHub

/// Most characters of a comment of ours, with all that is folded in it; GitHub takes 65,536.
pub const COMMENT_CHARS_MAX: usize = 60_000;
/// Most characters of a pull request's text.
pub const PULL_BODY_CHARS_MAX: usize = 30_000;
/// Most characters of a pull request's title.
pub const PULL_TITLE_CHARS_MAX: usize = 120;
/// Most tasks of one source that are looked at, and of one run that a mode may ask for.
pub const TASKS_MAX: usize = 1_000;
/// Largest file of tasks that is read.
pub const TASKS_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Most characters of a task's title.
pub const TASK_TITLE_CHARS_MAX: usize = 300;
/// Most characters of a task's text.
pub const TASK_BODY_CHARS_MAX: usize = 40_000;
/// Most characters of what an agent said that a dead letter has as its question.
pub const LETTER_QUESTION_CHARS_MAX: usize = 1_000;
/// How long the label of a run at work holds others back, if nobody says otherwise: as long as a job on GitHub may take.
pub const CLAIM_LEASE: Duration = Duration::from_secs(6 * 60 * 60);
/// Longest pause between tasks that a mode may ask for.
pub const DELAY_MS_MAX: u64 = 60 * 60 * 1_000;
/// Most comments of a discussion that an agent is given.
pub const THREAD_COMMENTS_MAX: usize = 50;
/// Most authors of a discussion whose rights are asked for.
pub const THREAD_AUTHORS_MAX: usize = 10;
/// Most bytes of a pull request's changes that an agent is given.
pub const PROMPT_DIFF_BYTES_MAX: usize = 64 * 1024;
/// Fixes that an agent is told of.
pub const OFFERS_SHOWN: usize = 3;
/// Most characters of one of them.
pub const OFFER_CHARS_MAX: usize = 3_000;
/// Largest file that lines around an error are taken from.
pub const CONTEXT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Most links that are followed until a file is found.
pub const LINK_STEPS_MAX: usize = 8;

/// Longest target of a link that is followed.
pub const LINK_BYTES_MAX: u64 = 4_096;
// Memory and recovery

/// Largest file of what is remembered that is read.
pub const MEMORY_FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Most failures in it.
pub const MEMORY_FAILURES_MAX: usize = 5_000;
/// Most remembered failures that are compared with one that was not seen before.
pub const MEMORY_COMPARED_MAX: u32 = 500;
/// Most of them that are shown.
pub const MEMORY_SIMILAR_MAX: usize = 3;
/// Most different failures of one verification that are remembered.
pub const RECOVER_FAILURES_MAX: usize = 50;
/// Attempts at one failure.
pub const RECOVER_ATTEMPTS_MAX: u32 = 3;
/// Attempts in all.
pub const RECOVER_ATTEMPTS_TOTAL_MAX: u32 = 6;
/// Fixes of one failure without effect, after which its cause is probably another one.
pub const RECOVER_WITHOUT_EFFECT_MAX: u32 = 2;
/// How long one attempt may take, the checks not included.
pub const RECOVER_TIMEOUT: Duration = Duration::from_secs(300);
/// How long is waited at most before the work is put off.
pub const RECOVER_WAIT_MAX: Duration = Duration::from_secs(120);
/// How long is waited for a limit that names no time.
pub const RECOVER_WAIT_USUAL: Duration = Duration::from_secs(60);
/// How long a run is put off at most for a limit; above that a person is asked.
pub const RECOVER_DEFERRAL_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// Recoveries after one step of an agent that were put off or cut short, before it is asked again all the same.
pub const RECOVER_CUT_SHORT_MAX: usize = 3;
/// Most bytes of the names of files that a linter is given.
pub const LINTER_FILES_BYTES_MAX: usize = 64 * 1024;
/// Most lines that a linter may change.
pub const LINTER_LINES_MAX: u64 = 200;
/// Most lines of a lock file that a fix may change.
pub const LOCK_LINES_MAX: u64 = 100;
/// Most bytes of a change that are looked at; a larger one is taken back.
pub const RECOVER_DIFF_BYTES_MAX: usize = 1024 * 1024;
/// Most lines of a change that is learnt.
pub const LEARNT_LINES_MAX: usize = 60;
/// Most files of a change that is learnt.
pub const LEARNT_FILES_MAX: usize = 5;
/// Most output of a program that mends something.
pub const RECOVER_SAID_BYTES_MAX: usize = 16 * 1024;
/// Checks of a verification that run at once, if nobody says otherwise.
pub const CHECKS_AT_ONCE: usize = 3;
/// Of the tests of an earlier run, how many hundredths have to run again for a pass to be believed.
pub const TESTS_PERCENT_MIN: u64 = 75;
/// Largest verification that is read.
pub const VERIFICATION_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Errors of one check that a report for people lists; the rest is counted.
pub const REPORT_ERRORS_SHOWN: usize = 50;
/// Largest file of the project that is read for the lines around an error.
pub const ERROR_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How often pending checks are looked at.
pub const MERGE_POLL: Duration = Duration::from_secs(10);
/// How long the first check of a merged commit may take to begin.
pub const MERGE_WATCH_APPEAR: Duration = Duration::from_secs(60);
/// Most pull requests that are looked at when no event names one.
pub const MERGE_PULLS_MAX: usize = 20;
/// Longest line that says where a pull request comes from.
pub const ORIGIN_BYTES_MAX: usize = 4 * 1024;
/// How often a merge starts again because the head moved.
pub const MERGE_RESTARTS_MAX: u32 = 3;

//! The codes of findings about plan files: `RS730` to `RS799`.

repertoire_text::diagnostic_codes! {
    PLAN_NO_TASKS = "RS730", "plan-no-tasks", Error,
        "The plan has no task.",
        "Write tasks as `- [ ] what to do`; sections for verification, check lists and manual QA hold none.";
    PLAN_TOO_LARGE = "RS731", "plan-too-large", Error,
        "The plan is larger than the limit.",
        "Split it into several plans.";
    PLAN_UNCLOSED = "RS732", "plan-unclosed", Error,
        "A fence or a comment is not closed, so the boxes below it are no tasks.",
        "Close it, with at least as many signs as it was opened with.";
    PLAN_UNKNOWN_MARK = "RS733", "plan-unknown-mark", Error,
        "A box holds a sign that nobody knows; it counts as blocked.",
        "Use `[ ]` open, `[~]` blocked, `[x]` implemented, `[R]` reviewed, `[!]` failed, or `[ ]?` for people.";
    PLAN_HIDDEN_TASK = "RS734", "plan-hidden-task", Warning,
        "A box is indented like code, so it is no task.",
        "Indent it by less than four columns, or by two below the item that it belongs to.";
    PLAN_EMPTY_TASK = "RS735", "plan-empty-task", Warning,
        "A task says nothing, so it is never chosen.",
        "Say what is to be done, or remove the box.";
    PLAN_TWIN_TASKS = "RS736", "plan-twin-tasks", Warning,
        "Two tasks say the same, so only their order tells them apart.",
        "Say in each what is particular to it, or give each a label such as `T001`.";
    PLAN_UNKNOWN_BLOCKER = "RS737", "plan-unknown-blocker", Error,
        "A blocker names no task and no section; whatever has it waits for ever.",
        "Name a task by its label, id or text, or a section by its title or phase.";
    PLAN_BLOCKER_CYCLE = "RS738", "plan-blocker-cycle", Error,
        "Tasks or sections wait for each other, so none of them is ever chosen.",
        "Remove one of the blockers.";
    PLAN_LONG_TASK = "RS739", "plan-long-task", Warning,
        "A task is longer than fits one iteration.",
        "Split it, or move what explains it into nested lines.";
    PLAN_UNKNOWN_SKILL = "RS740", "plan-unknown-skill", Warning,
        "A task names a skill that is not there.",
        "Install the skill, correct its name, or write the word in backticks if it is no skill.";
    PLAN_CODED_HINT = "RS741", "plan-coded-hint", Warning,
        "A skill is named in backticks, so it is not read as a hint.",
        "Remove the backticks.";
    PLAN_MISSING_SPEC = "RS742", "plan-missing-spec", Warning,
        "A task refers to a file that is not there.",
        "Write the file, or correct the path; it is looked for beside the plan and in the project's folder.";
    PLAN_CHECKED_PARENT = "RS743", "plan-checked-parent", Warning,
        "A task is ticked while a task within it is not done.",
        "Open its box again, or finish what is within it.";
}

//! Diagnostic codes for workflows: `RS700` to `RS729`.

repertoire_text::diagnostic_codes! {
    WORKFLOW_UNREADABLE = "RS700", "workflow-unreadable", Error,
        "The workflow is not of the shape that its schema says.",
        "Correct the field that is shown; `rep workflow schema` prints the schema.";
    WORKFLOW_FORMAT = "RS701", "workflow-format", Error,
        "The workflow is of a format that this program does not know.",
        "Use `format: 1`, or a later version of the program.";
    STEP_ID = "RS702", "workflow-bad-name", Error,
        "A name of a step, parameter, phase, role, outcome or check cannot be used.",
        "Use lower-case letters, digits, `-` (not in parameters) and `_`, and begin with a letter; `end`, `state` and `item` are taken.";
    DUPLICATE_STEP = "RS703", "workflow-duplicate-step", Error,
        "Two steps have the same id.",
        "Rename one of them.";
    UNKNOWN_TARGET = "RS704", "workflow-unknown-target", Error,
        "An edge leads to a step that does not exist.",
        "Name a step of the workflow, or `end`.";
    UNREACHABLE = "RS705", "workflow-unreachable-step", Error,
        "No way leads to the step.",
        "Lead an edge to it, or remove it.";
    NO_TERMINAL = "RS706", "workflow-no-end", Error,
        "No step ends the workflow.",
        "Give the last step `next: end`.";
    DEAD_END = "RS707", "workflow-dead-end", Error,
        "From the step there is no way to the end.",
        "Lead one of its outcomes on, or to `end`.";
    UNTAKEN_OUTCOME = "RS708", "workflow-untaken-outcome", Error,
        "The step can end with an outcome that no edge takes.",
        "Add the outcome to `next`, or a `default`.";
    UNGIVEN_OUTCOME = "RS709", "workflow-ungiven-outcome", Warning,
        "An edge waits for an outcome that the step cannot have.",
        "Remove the edge, or declare the outcome.";
    UNBOUNDED_LOOP = "RS710", "workflow-unbounded-loop", Error,
        "A loop has no bound, so a run need not end.",
        "Let it go through a gate, a confidence step, or a step with `loop` whose `at_limit` leads out of it.";
    GATE_PILLAR = "RS711", "workflow-gate-pillar", Error,
        "A gate lacks one of its pillars: banner, stop condition, re-verify mode.",
        "Give `banner`, `stop` and `reverify`.";
    GATE_REVIEW = "RS712", "workflow-gate-review", Error,
        "A gate is not fed by a review, or leads back to nothing.",
        "Name the steps of the review under `reviews`, and where to go on `fail`.";
    UNDECLARED_NAME = "RS713", "workflow-undeclared-name", Error,
        "A text or a condition uses a name that is not declared.",
        "Declare the parameter, give the step that hands it over an `output`, or correct the name.";
    BAD_TEMPLATE = "RS714", "workflow-bad-template", Error,
        "A text or a condition cannot be read as a template.",
        "Correct it; a literal `{{` is written as `{{ \"{{\" }}`.";
    UNKNOWN_REFERENCE = "RS715", "workflow-unknown-reference", Error,
        "A resource, convention, role, phase, gate, check or workflow is referred to and not there.",
        "Declare it, or correct the name.";
    SHARED_FILE = "RS716", "workflow-shared-file", Error,
        "Two sub-agents that run at once may change the same file.",
        "Give the file to one of them, or run them one after another.";
    BAD_PARAMETER = "RS717", "workflow-bad-parameter", Error,
        "A parameter's default, choices or range do not fit together.",
        "Correct the parameter.";
    BAD_BOUND = "RS718", "workflow-bad-bound", Error,
        "A bound, limit, schedule or level cannot be used.",
        "Correct the number.";
    RESOURCE_UNREADABLE = "RS719", "workflow-resource-unreadable", Error,
        "A resource or convention cannot be read.",
        "Put the file into the skill's folder.";
    EMPTY_STEP = "RS720", "workflow-empty-step", Warning,
        "The step tells its agent nothing.",
        "Give it `actions`.";
}

//! Diagnostic codes for skills: `RS100` to `RS599`. `RS501` and up are the specification as its reference
//! validator enforces it. Codes for files and YAML are in `repertoire_text::codes`.

repertoire_text::diagnostic_codes! {
    NAME_MISSING = "RS100", "name-missing", Error,
        "The skill has no name; the name of its folder or file is used.",
        "Add a `name` field.";
    NAME_FORMAT = "RS101", "name-format", Error,
        "The name breaks the naming rule: 1 to 64 lower-case letters, digits and single hyphens.",
        "Rename the skill; it is known by the corrected name meanwhile.";
    NAME_FOLDER = "RS102", "name-folder-mismatch", Warning,
        "The name differs from the name of the skill's folder or file.",
        "Rename one of the two: clients look skills up by either.";
    DESCRIPTION_MISSING = "RS103", "description-missing", Error,
        "The skill has no description, so nothing can tell when it applies. It is not loaded.",
        "Add a `description` that says what the skill does and when to use it.";
    DESCRIPTION_LENGTH = "RS104", "description-too-long", Error,
        "The description is longer than 1,024 characters.",
        "Shorten it; put details into the body.";
    FIELD_TYPE = "RS105", "field-type", Warning,
        "A field has a value of the wrong kind and was ignored or converted.",
        "Write the value as the help says.";
    FIELD_VALUE = "RS106", "field-value", Warning,
        "A field has a value that is not one of the known ones.",
        "Use one of the values that the help lists.";
    FIELD_UNKNOWN = "RS107", "field-unknown", Info,
        "The field is in no dialect that we know. It is kept and served back, but has no effect here.",
        "Check its spelling, or move it under `metadata`.";
    COMPATIBILITY_LENGTH = "RS108", "compatibility-too-long", Error,
        "The compatibility text is longer than 500 characters.",
        "Shorten it.";
    TRIGGER_PHRASES = "RS109", "trigger-phrases", Info,
        "Entries of a `triggers` list are event names; those with spaces are read as phrases.",
        "Write `triggers:` as a mapping with `keywords:` and `events:`.";
    VERSION_FORMAT = "RS110", "version-format", Warning,
        "The version is not a semantic version such as `1.0.0`.",
        "Write it as MAJOR.MINOR.PATCH.";
    TIMEOUT_RANGE = "RS111", "timeout-range", Warning,
        "`timeout_ms` is outside 1,000 to 300,000 milliseconds.",
        "Choose a value within the range.";
    TOOL_UNKNOWN = "RS112", "tool-unknown", Warning,
        "A required or disallowed tool is not one that any agent here provides.",
        "Check the spelling against the list in the documentation.";
    DEPENDENCY_FORMAT = "RS113", "dependency-format", Error,
        "A dependency is not of the form `name` or `name@VERSION`.",
        "Write it like `failure-memory@^1.2`.";
    TYPE_UNKNOWN = "RS114", "type-unknown", Warning,
        "`type` is not one of the known types.",
        "Use self-improvement, mode, custom, subagent, workflow, review, methodology, command or skill.";
    TRIGGERS_MISSING = "RS115", "triggers-missing", Warning,
        "A skill with a `type` is started by events, and this one lists none.",
        "Add a `triggers` list.";

    BODY_SHORT = "RS200", "body-too-short", Warning,
        "The body has fewer than 50 characters, which instructs nobody.",
        "Write the instructions.";
    BODY_LONG = "RS201", "body-too-long", Warning,
        "The body has more than 50,000 characters.",
        "Move details into files under `references/`.";
    BODY_TOKENS = "RS202", "body-over-budget", Warning,
        "The body is over 5,000 tokens or 500 lines, the size that the specification recommends.",
        "Move details into files under `references/`.";
    FENCE_OPEN = "RS203", "code-fence-open", Error,
        "A code fence is never closed, so the rest of the body is read as code.",
        "Close the fence.";
    LINK_DEAD = "RS204", "link-dead", Warning,
        "The body links to a file that is not in the skill's folder.",
        "Add the file or correct the link.";
    LINK_OUTSIDE = "RS205", "link-outside", Warning,
        "The body links to a file outside the skill's folder, which no client will read.",
        "Copy the file into the folder.";
    DESCRIPTION_WHEN = "RS206", "description-without-when", Info,
        "The description does not say when to use the skill.",
        "Add a sentence such as `Use when …`.";
    PATTERN_INVALID = "RS207", "pattern-invalid", Error,
        "A trigger pattern is not a regular expression that can run in linear time.",
        "Correct it; look-around and back-references are not available.";
    PATTERN_BROAD = "RS208", "pattern-too-broad", Warning,
        "A trigger pattern matches ordinary text, so the skill would be chosen for anything.",
        "Make it more specific; check the reach of `|`.";
    HIDDEN_TEXT = "RS209", "hidden-text", Error,
        "A file of the skill has invisible characters, which people cannot see but models read.",
        "Remove them; an editor that shows code points finds them at this place.";
    SHELL_SUBSTITUTION = "RS210", "shell-substitution", Info,
        "The body asks for a command to be run while it is loaded; it is left as text unless the skill is trusted.",
        "Tell the agent to run the command instead.";
    ANGLE_BRACKETS = "RS211", "angle-brackets", Error,
        "The description holds `<` or `>`, which Claude's upload refuses.",
        "Write it without angle brackets.";
    VALUE_CUT = "RS212", "value-cut-by-comment", Warning,
        "A value ends early because ` #` starts a comment.",
        "Quote the value, or run `rep lint --fix`.";

    TRIGGER_DUPLICATE = "RS300", "trigger-duplicate", Warning,
        "Two skills have the same trigger, so neither can be told from the other.",
        "Make the triggers differ.";
    DEPENDENCY_MISSING = "RS301", "dependency-missing", Error,
        "A skill that this one depends on is not in the catalog.",
        "Install it or remove the dependency.";
    DEPENDENCY_VERSION = "RS302", "dependency-version", Error,
        "The dependency is there, but not in a version that satisfies the requirement.",
        "Update the dependency or relax the requirement.";
    DEPENDENCY_CYCLE = "RS303", "dependency-cycle", Error,
        "Skills depend on each other in a circle.",
        "Break the circle.";
    SHADOWED = "RS304", "shadowed", Warning,
        "Another skill of the same name takes precedence over this one.",
        "Rename one of them, or remove the one that is not wanted.";
    WALK_DEEP = "RS310", "walk-too-deep", Warning,
        "Folders below the depth limit were not searched.",
        "Raise `walk.depth_max`, or move the skills up.";
    WALK_ENTRIES = "RS311", "walk-too-many-entries", Warning,
        "The root has more entries than the limit; the rest was not searched.",
        "Raise `walk.entries_max`, or split the root.";
    NAME_ON_DISK = "RS312", "file-name-refused", Warning,
        "A file or folder has a name that is not UTF-8 or holds control characters; it was passed over.",
        "Rename it.";
    ROOT_MISSING = "RS313", "root-missing", Warning,
        "A configured root is not there.",
        "Create it or remove it from the configuration.";
    UNTRUSTED_SHADOW = "RS314", "untrusted-cannot-shadow", Warning,
        "A skill from an untrusted root has the name of a trusted one and does not replace it.",
        "Rename it, or look at it and say `rep trust`.";
    KEPT_LAST_GOOD = "RS315", "kept-last-good", Warning,
        "The file was changed into something that cannot be loaded; the last good version stays in use.",
        "Correct the file.";
    PACK_NOT_SYNCED = "RS316", "pack-not-synced", Warning,
        "The built-in skills could not be copied to the data folder; they are used in place.",
        "Make the data folder writable.";
    WATCH_FAILED = "RS317", "watch-failed", Warning,
        "A root cannot be watched for changes; it is looked at again at intervals instead.",
        "Raise the system's limit on watches.";
    PACK_FILE_CHANGED = "RS318", "pack-file-changed", Warning,
        "A file where one of the built-in pack belongs is not the pack's; it was left alone.",
        "Keep your own version under another name and remove the file, and the pack's comes back.";
    LINK_AGAIN = "RS319", "link-again", Info,
        "Several symbolic links lead to the same folder; it was searched once.",
        "Remove the links that are not needed.";

    RESOURCE_LIMIT = "RS400", "resource-limit", Warning,
        "The skill's folder has more files or bytes than the limit; the rest is left out.",
        "Keep a skill under 512 files and 16 MiB.";
    BODY_CUT = "RS401", "body-cut", Warning,
        "The body was cut to fit the budget.",
        "Raise `skills_max_body_chars`, or shorten the skill.";
    SHELL_NOT_RUN = "RS402", "shell-not-run", Warning,
        "A shell substitution was left as text because the caller does not allow it.",
        "Run it by hand, or tell the agent to run it.";
    ARGUMENT_MISSING = "RS403", "argument-missing", Info,
        "The skill names an argument that was not given.",
        "Give it.";
    REFERENCE_LEFT_OUT = "RS404", "reference-left-out", Warning,
        "A reference was not appended because the budget was used up.",
        "Raise `skills_max_body_chars`, or let the agent read the file when it needs it.";
    SHELL_FAILED = "RS405", "shell-failed", Error,
        "A command that the skill runs when it is loaded failed; it is left as text.",
        "Run the command by hand to see why.";
    ARGUMENT_LIMIT = "RS406", "argument-limit", Warning,
        "The arguments would make the body grow by more than 1 MiB; later placeholders are left as text.",
        "Give shorter arguments.";

    SPEC_PATH_MISSING = "RS501", "spec-path-missing", Error,
        "The path that was to be validated does not exist.",
        "Check the spelling of the path.";
    SPEC_NOT_A_FOLDER = "RS502", "spec-not-a-folder", Error,
        "The path that was to be validated is not a folder.",
        "Name the skill's folder or its SKILL.md.";
    SPEC_SKILL_MD_MISSING = "RS503", "spec-skill-md-missing", Error,
        "The folder holds no SKILL.md.",
        "Add a SKILL.md that starts with frontmatter.";
    SPEC_UNREADABLE = "RS504", "spec-unreadable", Error,
        "SKILL.md could not be read as UTF-8 text.",
        "Save it as a regular file in UTF-8, within the size limit.";
    SPEC_FRONTMATTER_MISSING = "RS505", "spec-frontmatter-missing", Error,
        "The first three characters of SKILL.md are not `---`.",
        "Start the file with `---`, the fields, and another `---`.";
    SPEC_FRONTMATTER_NOT_CLOSED = "RS506", "spec-frontmatter-not-closed", Error,
        "The frontmatter has no closing `---`.",
        "Add a line with only `---` after the last field.";
    SPEC_YAML = "RS507", "spec-yaml", Error,
        "The frontmatter is not the restricted YAML that the specification's tools read.",
        "Write block style only: no `[...]` or `{...}`, no anchors, tags or repeated keys, and quote values that hold `: ` or ` #`.";
    SPEC_NOT_A_MAPPING = "RS508", "spec-not-a-mapping", Error,
        "The frontmatter is not a mapping of fields to values.",
        "Write one `field: value` per line.";
    SPEC_UNEXPECTED_FIELDS = "RS509", "spec-unexpected-fields", Error,
        "The frontmatter has fields that the specification does not know.",
        "Move them below `metadata`.";
    SPEC_FIELD_MISSING = "RS510", "spec-field-missing", Error,
        "A required field is missing.",
        "Give both `name` and `description`.";
    SPEC_FIELD_EMPTY = "RS511", "spec-field-empty", Error,
        "A required field is empty, or is a list or a mapping.",
        "Give it a text.";
    SPEC_NAME_TOO_LONG = "RS512", "spec-name-too-long", Error,
        "The name has more than 64 characters.",
        "Shorten it.";
    SPEC_NAME_LOWERCASE = "RS513", "spec-name-lowercase", Error,
        "The name holds upper-case letters.",
        "Write it in lower case.";
    SPEC_NAME_EDGE_HYPHEN = "RS514", "spec-name-edge-hyphen", Error,
        "The name starts or ends with a hyphen.",
        "Remove the hyphen.";
    SPEC_NAME_DOUBLE_HYPHEN = "RS515", "spec-name-double-hyphen", Error,
        "The name holds two hyphens in a row.",
        "Write one.";
    SPEC_NAME_CHARACTERS = "RS516", "spec-name-characters", Error,
        "The name holds characters other than letters, digits and hyphens.",
        "Replace them with hyphens.";
    SPEC_NAME_FOLDER = "RS517", "spec-name-folder", Error,
        "The name differs from the name of the skill's folder.",
        "Rename one of the two.";
    SPEC_DESCRIPTION_TOO_LONG = "RS518", "spec-description-too-long", Error,
        "The description has more than 1024 characters.",
        "Move details into the body.";
    SPEC_COMPATIBILITY_NOT_TEXT = "RS519", "spec-compatibility-not-text", Error,
        "The field `compatibility` is a list or a mapping.",
        "Give it a text.";
    SPEC_COMPATIBILITY_TOO_LONG = "RS520", "spec-compatibility-too-long", Error,
        "The field `compatibility` has more than 500 characters.",
        "Shorten it.";
}

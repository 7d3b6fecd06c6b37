//! The codes of findings about skills. `RS501` to `RS549` are the Agent Skills specification as the
//! reference validator enforces it.

repertoire_text::diagnostic_codes! {
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

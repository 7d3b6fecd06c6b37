//! Codes of diagnostics about files, frontmatter and YAML: `RS001` to `RS049`.

/// Declares codes as statics, and a list of all of them, from one table.
#[macro_export]
macro_rules! diagnostic_codes {
    ($(
        $constant:ident = $id:literal, $name:literal, $severity:ident, $summary:literal, $remedy:literal;
    )*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $summary)]
            pub static $constant: $crate::DiagnosticCode = $crate::DiagnosticCode {
                id: $id,
                name: $name,
                severity: $crate::Severity::$severity,
                summary: $summary,
                remedy: $remedy,
            };
        )*
        /// All codes of this module, sorted by id.
        pub static ALL: &[&$crate::DiagnosticCode] = &[$(&$constant),*];
    };
}

diagnostic_codes! {
    FILE_TOO_LARGE = "RS001", "file-too-large", Error,
        "The file is larger than the limit and was not read.",
        "Move long material into files that the skill refers to.";
    NOT_A_FILE = "RS002", "not-a-regular-file", Error,
        "The path is a pipe, device, socket or folder where a regular file was expected.",
        "Replace it with a regular file.";
    UNREADABLE = "RS003", "unreadable", Error,
        "The file or folder could not be read.",
        "Check its permissions.";
    NOT_UTF8 = "RS004", "not-utf8", Error,
        "The file is not UTF-8 text.",
        "Save it as UTF-8.";
    BYTE_ORDER_MARK = "RS005", "byte-order-mark", Info,
        "The file starts with a byte order mark, which strict readers refuse.",
        "Save it as UTF-8 without a byte order mark.";
    LINK_LEAVES = "RS006", "link-leaves-folder", Warning,
        "A symbolic link leads out of the folder it stands in and was not followed.",
        "Copy the file into the folder.";
    PATH_REFUSED = "RS007", "path-refused", Error,
        "The path is absolute or climbs out of the folder with `..`.",
        "Name a file inside the folder.";
    NO_FRONTMATTER = "RS010", "no-frontmatter", Error,
        "The file does not start with a `---` line, so it has no frontmatter.",
        "Start the file with `---`, the fields, and another `---`.";
    FRONTMATTER_NOT_CLOSED = "RS011", "frontmatter-not-closed", Error,
        "The frontmatter has no closing `---` line.",
        "Add a line with only `---` after the last field.";
    FRONTMATTER_TOO_LARGE = "RS012", "frontmatter-too-large", Error,
        "The frontmatter is larger than the limit.",
        "Keep fields short and move text into the body.";
    FRONTMATTER_NOT_MAPPING = "RS013", "frontmatter-not-mapping", Error,
        "The frontmatter is not a mapping of fields to values.",
        "Write one `field: value` per line.";
    YAML_SYNTAX = "RS020", "yaml-syntax", Error,
        "The frontmatter is not valid YAML, and no repair is known.",
        "Correct the line that is shown.";
    YAML_ANCHOR = "RS021", "yaml-anchor", Error,
        "YAML anchors (`&name`) are not accepted.",
        "Quote the value if it is meant as text.";
    YAML_ALIAS = "RS022", "yaml-alias", Error,
        "YAML aliases (`*name`) are not accepted.",
        "Quote the value if it is meant as text.";
    YAML_TAG = "RS023", "yaml-tag", Error,
        "YAML tags (`!!type`) are not accepted.",
        "Remove the tag, or quote the value if it is meant as text.";
    YAML_SEVERAL_DOCUMENTS = "RS024", "yaml-several-documents", Error,
        "The frontmatter holds more than one YAML document or a directive.",
        "Keep one mapping between the `---` lines.";
    YAML_TOO_DEEP = "RS025", "yaml-too-deep", Error,
        "The frontmatter is nested deeper than the limit.",
        "Flatten it.";
    YAML_TOO_MANY_NODES = "RS026", "yaml-too-many-nodes", Error,
        "The frontmatter has more values than the limit.",
        "Move data into a file of its own.";
    YAML_DUPLICATE_KEY = "RS027", "yaml-duplicate-key", Error,
        "A field is given twice, so nobody can tell which value counts.",
        "Remove one of the two.";
    YAML_KEY_NOT_TEXT = "RS028", "yaml-key-not-text", Error,
        "A key is a list or a mapping; only text can be a key.",
        "Use a plain word as the key.";
    CONTROL_CHARACTER = "RS029", "control-character", Error,
        "The frontmatter holds a control character.",
        "Remove it.";
    REPAIRED_VALUE = "RS030", "repaired-value", Warning,
        "A value had to be quoted before the frontmatter could be read.",
        "Quote the value, or run `rep lint --fix`.";
    REPAIRED_TAB = "RS031", "repaired-tab", Warning,
        "A line is indented with a tab, which YAML forbids; it was read as two spaces.",
        "Indent with spaces, or run `rep lint --fix`.";
    REPAIRED_INDENT = "RS032", "repaired-indent", Warning,
        "A field is indented where it cannot belong to the line above; it was read at its proper place.",
        "Correct the indentation, or run `rep lint --fix`.";
}

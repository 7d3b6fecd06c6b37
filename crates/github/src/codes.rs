//! The diagnostic codes for modes: `RS800` to `RS809`.

repertoire_text::diagnostic_codes! {
    MODE_SECTION = "RS800", "mode-section-missing", Error,
        "A mode has no template where one must be, so that it cannot be used.",
        "Add the section as a heading of level two or three, with the template in a fenced block below it.";
    MODE_FENCE = "RS801", "mode-fence-open", Error,
        "The fenced block of a template is not closed.",
        "Close it with as many backticks as it was opened with.";
    MODE_TRIGGER = "RS802", "mode-trigger-unknown", Warning,
        "A trigger is not one of the vocabulary, and never holds.",
        "Use a name of the list that the help shows.";
    MODE_TRIGGERS_NONE = "RS803", "mode-without-triggers", Warning,
        "A mode without triggers is never detected.",
        "List the triggers that start it.";
    MODE_SETTING = "RS804", "mode-setting", Warning,
        "A setting of the mode has a value that it cannot have; the usual one is used.",
        "Use a value that the help shows.";
    MODE_PLACEHOLDER = "RS805", "mode-placeholder-unknown", Warning,
        "A template has a placeholder that nothing fills in; it stays as it is.",
        "Use a name of the list that the help shows.";
    MODE_UNTRUSTED = "RS806", "mode-untrusted", Warning,
        "A mode that nobody agreed to is not used.",
        "Read it, and agree to it with `rep trust`.";
}

//! Diagnostic codes of the lint rules that need selection: `RS600` and up.

repertoire_text::diagnostic_codes! {
    INDISTINGUISHABLE = "RS600", "description-indistinguishable", Warning,
        "Another skill is described in the same words, so nothing can tell which of the two a task needs.",
        "Say in each description when to use this skill and not the other, or keep only one of them.";
    NEVER_FIRST = "RS601", "never-first", Warning,
        "Asked for in its own words, the skill never comes first: others answer them better.",
        "Say in the description what only this skill does, in the words that people use to ask for it.";
}

//! The codes of findings about review skills: `RS410` to `RS419`.

repertoire_text::diagnostic_codes! {
    REVIEW_EMPTY = "RS410", "review-empty", Warning,
        "A skill for reviews has none of the sections that a review reads, so it tells an agent nothing.",
        "Give it a heading or a bold label with a severity, such as `### Injection (Critical)`, and bullets below it.";
    REVIEW_PATTERN_UNUSABLE = "RS411", "review-pattern-unusable", Warning,
        "The expression of an auto-validated pattern cannot be used; findings of its name are validated as any other.",
        "Correct it; look-around and back-references are not available.";
    REVIEW_PATTERN_DUPLICATE = "RS412", "review-pattern-duplicate", Warning,
        "Two auto-validated patterns have the same id; the first one counts.",
        "Rename one of them.";
    REVIEW_POINTER_DEAD = "RS413", "review-pointer-dead", Warning,
        "A section points to a shared file, or to a section of one, that cannot be read.",
        "Add the file or the section, or correct the path.";
    REVIEW_POINTER_OUTSIDE = "RS414", "review-pointer-outside", Warning,
        "A section points to a file outside the skill's folder, its root and its plugin, which is not read.",
        "Copy the file into the skill's folder.";
    REVIEW_CUT = "RS415", "review-cut", Warning,
        "A part of a review skill is over its limit; the rest was left out.",
        "Shorten it, or split the skill.";
    REVIEW_TABLE = "RS416", "review-table", Warning,
        "A table of auto-validated patterns, or a row of it, names no pattern.",
        "Give the table a column `Pattern`, `ID` or `Name`, and every row an id.";
    REVIEW_GLOB = "RS417", "review-glob", Warning,
        "A glob or a language of a review skill is not one that we know.",
        "Write a glob such as `**/*.ts`.";
    REVIEW_UNUSED = "RS418", "review-unused", Warning,
        "A skill that is taken as a methodology has focus areas with severities or auto-validated patterns, which a review does not use.",
        "Name it `reviewing-...`, or say `type: review`; say `type: methodology` if it is meant so.";
    REVIEW_SEVERITY = "RS419", "review-severity", Warning,
        "A word stands where a severity does and is none that we know.",
        "Write Critical, Major, Minor or Suggestion.";

}

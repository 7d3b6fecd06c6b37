//! What the patterns of `reviewing-documentation` find, and what they leave alone.

use super::Row;

pub(super) const DOCUMENTATION: &[Row] = &[
    (
        "unresolved_merge_marker",
        &["text\n<<<<<<< HEAD\nmore", ">>>>>>> main"],
        &["=======", "    <<<<<<< HEAD", "<<<<<<<<"],
    ),
    (
        "empty_section",
        &["## Usage\n\n## Options\n", "### A\n## B", "## A\n\n\n# B"],
        &[
            "## Usage\n\n### Options\n",
            "## Usage\n\nText.\n\n## Options\n",
            "# Title\n\n## First\n",
        ],
    ),
    (
        "placeholder_text",
        &["TBD", "  TODO.", "Lorem ipsum dolor sit amet", "[insert the name here]"],
        &["The TODO list is in the sidebar.", "TODO items are counted", "[add it here](link.md)"],
    ),
    (
        "empty_link",
        &["See [the user guide]().", "[read more here]( )"],
        &["[the guide](guide.md)", "auto f = [this]() {", "[a, b]()", "- [ ] ()", "names[0]()"],
    ),
    (
        "local_file_link",
        &["[spec](file:///C:/spec.md)", "![](/Users/anna/shot.png)", "[x](C:\\docs\\x.md)"],
        &[
            "[spec](spec.md)",
            "[x](/docs/x.md)",
            "`/Users/anna/x`",
            "[h](https://example.com/home/)",
        ],
    ),
    (
        "image_without_alt",
        &["![](diagram.png)", "![ ](a.svg)"],
        &["![The three layers](diagram.png)", "[](x)", "!important"],
    ),
    (
        "hidden_todo",
        &["<!-- TODO: say more -->", "<!--FIXME-->"],
        &["<!-- TODO #12: say more -->", "<!-- TODO(anna) -->", "<!-- prettier-ignore -->"],
    ),
    (
        "chat_leftover",
        &[
            "Certainly! Here is the guide:",
            "As an AI language model, I cannot",
            "I hope this helps!",
        ],
        &[
            "Here is the guide:",
            "Sure, this works.",
            "We hope this helps you.",
            "> Certainly! Here is",
        ],
    ),
];

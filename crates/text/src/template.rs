//! The syntax of all templates: pages of HTML and the texts of workflows.

use minijinja::syntax::SyntaxConfig;

/// The usual delimiters. A line with nothing but a block leaves no line in the output, and the newline at the end of a
/// template is kept.
pub fn block_line_syntax() -> SyntaxConfig {
    SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .expect("the usual delimiters are valid")
}

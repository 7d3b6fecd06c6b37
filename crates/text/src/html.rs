//! Text in HTML pages: the escape, an environment for templates that applies it to every value, and the hashes by which
//! a content security policy names a style or script.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use sha2::{Digest, Sha256};

use crate::invisible::shown_in_report;
use crate::template::block_line_syntax;

/// The quotes that an escape replaces beside `&`, `<` and `>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EscapedQuotes {
    /// None, which is enough between tags.
    None,
    /// Double quotes, which also serves attributes in double quotes.
    Double,
    /// Double and single quotes.
    Both,
}

/// Escapes text for HTML and XML.
///
/// ```
/// use repertoire_text::html::{EscapedQuotes, escape_markup};
///
/// assert_eq!(escape_markup("it's \"<b>\"", EscapedQuotes::None), "it's \"&lt;b&gt;\"");
/// assert_eq!(escape_markup("it's \"&\"", EscapedQuotes::Both), "it&#39;s &quot;&amp;&quot;");
/// ```
pub fn escape_markup(text: &str, quotes: EscapedQuotes) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate() {
        let reference = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' if quotes != EscapedQuotes::None => "&quot;",
            b'\'' if quotes == EscapedQuotes::Both => "&#39;",
            _ => continue,
        };
        out.push_str(&text[done..at]);
        out.push_str(reference);
        done = at + 1;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Creates an environment for the templates of a page, given by name and source.
///
/// Every value is escaped for content and attributes, and its invisible characters are shown as `⟨U+202E⟩`. A name
/// without a value is an error.
///
/// # Panics
///
/// If a template is malformed. Templates are part of the program, and a test renders each.
pub fn page_environment(templates: &[(&'static str, &'static str)]) -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_auto_escape_callback(|_| AutoEscape::Html);
    env.set_syntax(block_line_syntax());
    env.set_formatter(|out, _, value| {
        let text = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
        if value.is_safe() {
            return Ok(out.write_str(&text)?);
        }
        let shown = shown_in_report(&text);
        Ok(out.write_str(&escape_markup(&shown, EscapedQuotes::Both))?)
    });
    for (name, source) in templates {
        env.add_template(name, source).expect("the templates of the program are valid");
    }
    env
}

/// The source expression that allows a style or script of this text in a content security policy.
pub fn source_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    #[test]
    fn every_value_of_a_template_is_escaped_and_its_hidden_characters_are_shown() {
        let env = page_environment(&[
            ("macros", "{% macro name(text) %}<i>{{ text }}</i>{% endmacro %}"),
            (
                "page",
                "{% import 'macros' as macros %}\n<p title=\"{{ text }}\">{{ macros.name(text) }}{{ 3 }}</p>\n",
            ),
        ]);
        let page = env.get_template("page").unwrap();
        let page = page.render(context! { text => "<a b='c'>&\u{202e}/\r\n" }).unwrap();
        let escaped = "&lt;a b=&#39;c&#39;&gt;&amp;⟨U+202E⟩/\n";
        assert_eq!(page, format!("<p title=\"{escaped}\"><i>{escaped}</i>3</p>\n"));
    }

    #[test]
    fn a_name_without_a_value_is_an_error() {
        let env = page_environment(&[("page", "{{ text }}")]);
        assert!(env.get_template("page").unwrap().render(context! {}).is_err());
    }
}

//! Neutralises text of models and users that is published under the bot's name.
//!
//! Published text can mention people, close issues, trigger the bot again, hide content from
//! readers, leak a secret through an image URL, or be taken for a command by the runner. The text
//! stays readable; only constructs with an effect are broken.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use repertoire_model::ApiSecret;
use repertoire_text::html::{EscapedQuotes, escape_markup};

/// The settings for neutralising a text.
#[derive(Clone, Debug, Default)]
pub struct NeutraliseRules<'a> {
    /// Phrases that trigger the bot, such as `@repertoire`.
    pub triggers: &'a [&'a str],
    /// Secrets that are redacted wherever they occur.
    pub secrets: &'a [ApiSecret],
    /// The host whose images may be shown, such as that of GitHub itself.
    pub image_host: Option<&'a str>,
}

/// Neutralises a text.
///
/// ```
/// use repertoire_github::comment::{NeutraliseRules, neutralise_text};
///
/// let said = "Thanks @ada, this fixes #12 <!-- hidden -->";
/// let shown = neutralise_text(said, &NeutraliseRules::default());
/// assert_eq!(shown, "Thanks @\u{200b}ada, this fixes #\u{200b}12 &lt;!-- hidden --&gt;");
/// ```
pub fn neutralise_text(text: &str, rules: &NeutraliseRules<'_>) -> String {
    let mut text = remove_invisible(text);
    for secret in rules.secrets {
        text = secret.scrub(&text);
    }
    text = repertoire_text::secrets::redact_tokens(&text, "***").into_owned();
    text = without_images(&text, rules.image_host);
    text = without_html(&text);
    for trigger in rules.triggers.iter().filter(|trigger| !trigger.is_empty()) {
        text = without_trigger(&text, trigger);
    }
    // This comes after the triggers, because a break within a mention would keep them from being
    // found.
    text = MENTIONS.replace_all(&text, "$1@\u{200b}$2").into_owned();
    text = without_closing(&text);
    COMMANDS.replace_all(&text, "$1:\u{200b}:").replace("##[", "##\u{200b}[")
}

/// Escapes a text and puts it on one line, for the summary of a fold.
pub(super) fn one_line(text: &str) -> String {
    let line = repertoire_text::layout::one_line(&remove_invisible(text));
    escape_markup(&line, EscapedQuotes::None).chars().take(200).collect()
}

/// Escapes the tags of folds, so that no fold begins or ends in a text.
pub(super) fn without_folds(text: &str) -> String {
    FOLDS.replace_all(text, "&lt;$1").into_owned()
}

/// Removes invisible characters, which could hide text or split words unnoticed.
fn remove_invisible(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    repertoire_text::invisible::removed(&text).0.into_owned()
}

/// Replaces images. Browsers fetch an image when the page is viewed, so its URL could leak data
/// written into it.
fn without_images(text: &str, host: Option<&str>) -> String {
    let text = IMAGES.replace_all(text, |found: &Captures<'_>| {
        if is_allowed_image(&found[2], host) {
            found[0].to_owned()
        } else {
            format!("[image: {}] (`{}`)", &found[1], found[2].replace('`', ""))
        }
    });
    // Any image that is left, such as one with a reference as its address, becomes a link.
    let text = text.replace("![", "!\u{200b}[");
    // Restore the allowed images. Images in HTML need no handling here: tags are escaped as a
    // whole.
    match host {
        Some(_) => IMAGES_BROKEN
            .replace_all(&text, |found: &Captures<'_>| {
                if is_allowed_image(&found[2], host) {
                    format!("![{}]({})", &found[1], &found[2])
                } else {
                    found[0].to_owned()
                }
            })
            .into_owned(),
        None => text,
    }
}

fn is_allowed_image(url: &str, host: Option<&str>) -> bool {
    let Some(host) = host else { return false };
    let Some(rest) = url.strip_prefix("https://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let plain = !rest.contains(['?', '#']) && !authority.contains(['@', ':', '\\']);
    plain && authority.eq_ignore_ascii_case(host)
}

/// Escapes tags and comments, so that they are shown as written. Text such as `a < b` is left
/// alone.
fn without_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut code = CodeFenceTracker::default();
    for line in text.split_inclusive('\n') {
        if code.is_code(line) {
            // HTML is inert in a code block, but a marker would still be found there.
            out.push_str(&line.replace("<!--", "<\u{200b}!--"));
        } else {
            out.push_str(&TAGS.replace_all(line, "&lt;$1").replace("-->", "--&gt;"));
        }
    }
    out
}

#[derive(Default)]
struct CodeFenceTracker {
    fence: Option<String>,
}

impl CodeFenceTracker {
    fn is_code(&mut self, line: &str) -> bool {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let body = line.trim();
        let mark = body.chars().next().filter(|c| matches!(c, '`' | '~') && indent < 4);
        let run: String = body.chars().take_while(|c| Some(*c) == mark).collect();
        match &self.fence {
            Some(fence) => {
                let closes = run.starts_with(fence.as_str()) && run == body;
                if closes {
                    self.fence = None;
                }
                true
            }
            None => {
                let opens =
                    run.len() >= 3 && !(mark == Some('`') && body[run.len()..].contains('`'));
                if opens {
                    self.fence = Some(run);
                }
                opens
            }
        }
    }
}

/// Breaks a phrase after its first character, wherever it occurs and in any case. A visible space
/// is used, because the search for the phrase removes invisible characters first.
fn without_trigger(text: &str, trigger: &str) -> String {
    let pattern = format!("(?i){}", regex::escape(trigger));
    let Ok(found) = Regex::new(&pattern) else { return text.to_owned() };
    found.replace_all(text, break_after_first).into_owned()
}

fn break_after_first(found: &Captures<'_>) -> String {
    let mut chars = found[0].chars();
    let first: String = chars.next().into_iter().collect();
    format!("{first} {}", chars.as_str())
}

/// Breaks closing keywords: `fixes #12`, `closes octo/repo#12` and `resolves https://…/issues/12`
/// would close issues on merge.
fn without_closing(text: &str) -> String {
    let broken = |found: &Captures<'_>| format!("{}{}#\u{200b}{}", &found[1], &found[2], &found[3]);
    let text = CLOSING.replace_all(text, broken);
    CLOSING_URL.replace_all(&text, "$1`$2`").into_owned()
}

fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns of this program are written right")
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| compile_regex($text));
    };
}

pattern!(IMAGES, r#"!\[([^\]\n]*)\]\(\s*<?([^)\s>]+)>?[^)\n]*\)"#);
pattern!(IMAGES_BROKEN, "!\u{200b}\\[([^\\]\\n]*)\\]\\(([^)\\s]+)\\)");
pattern!(TAGS, r"<([!/?a-zA-Z])");
pattern!(FOLDS, r"(?i)<(/?(?:details|summary))");
pattern!(MENTIONS, r"(^|[^A-Za-z0-9_/\x60])@([A-Za-z0-9])");
pattern!(
    CLOSING,
    r"(?i)\b((?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\s*:?\s+)((?:[\w.-]+/[\w.-]+)?)#(\d)"
);
pattern!(
    CLOSING_URL,
    r"(?i)\b((?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\s*:?\s+)(https?://[^\s`]+/(?:issues|pull)/\d+)"
);
// Runner commands stand at the beginning of a line; the older form `##[name]` may stand anywhere.
pattern!(COMMANDS, r"(?m)^([ \t]*):(?::)");

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let rules =
            NeutraliseRules { triggers: &["@repertoire", "/agent"], ..NeutraliseRules::default() };
        assert_eq!(neutralise_text(text, &rules).replace('\u{200b}', "·"), expect);
    }

    #[test]
    fn nobody_is_called() {
        check("ask @ada and @octo/team", "ask @·ada and @·octo/team");
        check("(@ada)", "(@·ada)");
        check("@ada", "@·ada");
        check("mail ada@example.org", "mail ada@example.org");
    }

    #[test]
    fn nothing_is_closed() {
        check("fixes #12", "fixes #·12");
        check("Closed: #3, RESOLVES octo/repo#4", "Closed: #·3, RESOLVES octo/repo#·4");
        check("fix https://github.com/o/r/issues/5", "fix `https://github.com/o/r/issues/5`");
        check("see #12", "see #12");
        check("prefixes #12", "prefixes #12");
    }

    #[test]
    fn we_do_not_start_ourselves() {
        check("say @Repertoire go", "say @ Repertoire go");
        check("/AGENT fix it", "/ AGENT fix it");
        check("@\u{200d}repertoire", "@ repertoire");
        check("👩\u{200d}🔬", "👩\u{200d}🔬");
    }

    #[test]
    fn markers_and_markup_are_shown_and_not_obeyed() {
        check("<!-- repertoire:tag -->", "&lt;!-- repertoire:tag --&gt;");
        check("<img src=https://e.example/?k=1>", "&lt;img src=https://e.example/?k=1>");
        check("</details><script>x</script>", "&lt;/details>&lt;script>x&lt;/script>");
        check("a < b && b <= c", "a < b && b <= c");
        check(
            "```\n<!-- repertoire:tag -->\n```\n<b>",
            "```\n<·!-- repertoire:tag -->\n```\n&lt;b>",
        );
        check("Vec<u8>", "Vec&lt;u8>");
    }

    #[test]
    fn no_picture_is_fetched_from_elsewhere() {
        check("![x](https://e.example/?key=1)", "[image: x] (`https://e.example/?key=1`)");
        check("![x]( <https://e.example/a> \"t\")", "[image: x] (`https://e.example/a`)");
        check("![x][ref]\n\n[ref]: https://e.example", "!·[x][ref]\n\n[ref]: https://e.example");
        check("![x]", "!·[x]");
        let rules =
            NeutraliseRules { image_host: Some("github.com"), ..NeutraliseRules::default() };
        let ours = "![x](https://github.com/o/r/a.png)";
        assert_eq!(neutralise_text(ours, &rules), ours);
        for other in [
            "![x](https://github.com.evil.example/a.png)",
            "![x](https://github.com@evil.example/a.png)",
            "![x](https://github.com/o/r/a.png?key=secret)",
            "![x](http://github.com/a.png)",
        ] {
            assert!(!neutralise_text(other, &rules).contains("!["), "{other}");
        }
    }

    #[test]
    fn secrets_are_taken_out_by_value_and_by_shape() {
        let secrets = [ApiSecret::new("hunter2hunter2")];
        let rules = NeutraliseRules { secrets: &secrets, ..NeutraliseRules::default() };
        assert_eq!(neutralise_text("x hunter2hunter2 y", &rules), "x *** y");
        check("ghp_0123456789abcdefghij0123456789abcdef", "***");
        check("key sk-ant-api03-0123456789abcdefghij", "key ***");
        check("AKIAIOSFODNN7EXAMPLE", "***");
        check("hun\u{200b}ter", "hunter");
        let hidden = "hunter2\u{200b}hunter2";
        assert_eq!(neutralise_text(hidden, &rules), "***");
    }

    #[test]
    fn the_runner_is_told_nothing() {
        check("::set-output name=x::y", ":·:set-output name=x::y");
        check("ok\n  ::add-mask::x", "ok\n  :·:add-mask::x");
        check("x ##[error]y", "x ##·[error]y");
        check("std::fs::read", "std::fs::read");
    }

    #[test]
    fn hidden_characters_are_gone() {
        check("a\u{202e}b\u{e0041}c\u{0007}d\r\ne", "abcd\ne");
    }

    proptest::proptest! {
        #[test]
        fn what_is_harmless_stays_so(text in "(?s)[ -~\n@#<>!`\u{200b}ä]{0,200}") {
            let rules = NeutraliseRules { triggers: &["@repertoire"], ..NeutraliseRules::default() };
            let once = neutralise_text(&text, &rules);
            proptest::prop_assert!(!once.contains("<!--"));
            proptest::prop_assert!(!once.contains("!["));
            proptest::prop_assert!(!once.to_lowercase().contains("@repertoire"));
            proptest::prop_assert!(!once.lines().any(|line| line.trim_start().starts_with("::")));
        }
    }
}

//! Finds links to files that are not in the skill's folder.

use camino::Utf8Path;
use repertoire_text::Diagnostic;

use crate::codes;
use crate::lint::{LintRule, LintSubject};

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: true };

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    // A flat skill has no folder of its own, so its links cannot be checked.
    if !subject.skill.origin.is_folder() {
        return;
    }
    for (target, span) in subject.body.find_links() {
        let Some(path) = parse_relative_file(target) else { continue };
        let path = Utf8Path::new(&path);
        let (code, message) = if !repertoire_text::fs::is_beneath(path) {
            (&codes::LINK_OUTSIDE, format!("`{target}` is outside the skill's folder"))
        } else if target_exists(subject, path) {
            continue;
        } else {
            (&codes::LINK_DEAD, format!("`{target}` is not in the skill's folder"))
        };
        if subject.body.is_code(span.start) {
            continue;
        }
        out.push(Diagnostic::new(code, message).at(&subject.skill.source, span).help(code.remedy));
    }
}

/// Returns the path of a link that names a file: no scheme, no anchor, no placeholder.
fn parse_relative_file(target: &str) -> Option<String> {
    let target = target.split([' ', '"']).next().unwrap_or("");
    let target = target.trim_start_matches('<').trim_end_matches('>');
    let path = target.split(['#', '?']).next().unwrap_or("");
    let named =
        path.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./%~+@".contains(&b) || b >= 0x80);
    let absolute = path.starts_with('/') || path.starts_with('~') || path.contains("...");
    // A word without a dot or slash is a placeholder (`[text](url)`) more often than a file.
    let is_path = path.contains('.') || path.contains('/');
    (named && !absolute && is_path && !path.is_empty()).then(|| decode_percent(path))
}

fn decode_percent(path: &str) -> String {
    if !path.contains('%') {
        return path.to_owned();
    }
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The names in the folder are known from the walk; only deeper paths need a look at the disk.
fn target_exists(subject: &LintSubject<'_>, path: &Utf8Path) -> bool {
    let mut parts = path.components().filter(|part| part.as_str() != ".");
    let Some(first) = parts.next() else { return true };
    let here = subject.siblings.binary_search_by(|name| name.as_str().cmp(first.as_str())).is_ok();
    here && (parts.next().is_none() || subject.skill.origin.dir().join(path).exists())
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::{findings, skill};

    #[track_caller]
    fn check(code: &str, body: &str, expect: &[&str]) {
        assert_eq!(findings(code, &skill("", body)), expect, "{body}");
    }

    #[test]
    fn dead_links_are_found_and_others_left_alone() {
        check(
            "RS204",
            "See [a](references/a.md).\n",
            &["5:9 `references/a.md` is not in the skill's folder"],
        );
        check("RS204", "[me](SKILL.md) [me](./SKILL.md#top)\n", &[]);
        check("RS204", "[x](https://e.org/a.md) [y](#z) [z](mailto:a@b.c) [t](url)\n", &[]);
        check("RS204", "```\n[a](gone.md)\n```\n`[a](gone.md)`\n", &[]);
        check("RS204", "[a]({{path}}.md) [b](<name>.md) [c](/abs.md) [d](path/...)\n", &[]);
        check(
            "RS205",
            "[a](../other/x.md)\n",
            &["5:5 `../other/x.md` is outside the skill's folder"],
        );
    }
}

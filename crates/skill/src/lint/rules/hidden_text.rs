//! Finds invisible characters in `SKILL.md`. [`crate::hidden`] also searches the other files of the folder.

use repertoire_text::Diagnostic;

use crate::hidden_text::find_in_text;
use crate::lint::{LintRule, LintSubject};

pub(in crate::lint) static RULE: LintRule = LintRule { check, claude: true };

fn check(subject: &LintSubject<'_>, out: &mut Vec<Diagnostic>) {
    let found = find_in_text(&subject.skill.origin.file, &subject.skill.source);
    out.extend(found.into_iter().map(|found| found.diagnostic));
}

#[cfg(test)]
mod tests {
    use crate::lint::rules::testing::{findings, skill};

    #[test]
    fn hidden_characters_are_found_and_emoji_left_alone() {
        let check = |body: &str, count: usize| {
            assert_eq!(findings("RS209", &skill("", body)).len(), count, "{body:?}");
        };
        check("plain — “quotes” … 👩‍👩‍👧 ✔️", 0);
        check("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", 0);
        check("x\u{e0069}\u{e0067}", 1);
        check("a\u{202e}b", 1);
        check("a\u{200b}b", 1);
        check("a\u{200d}b", 1);
        check("a\u{fe00}\u{fe01}", 1);
        check("a\u{2062}b", 1);
        check("a\u{3164}b", 1);
        check("co\u{ad}py", 1);
        check("icon \u{e0b0}", 1);
        check("\u{1b}[8mhidden", 1);
    }
}

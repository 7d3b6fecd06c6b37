//! Learning fixes from an agent's change, once the checks pass.

use std::collections::BTreeSet;

use repertoire_journal::limits::FIX_BYTES_MAX;
use repertoire_journal::memory::FixOrigin;
use repertoire_journal::{FailureFix, FixRemedy};

use crate::limits::{LEARNT_FILES_MAX, LEARNT_LINES_MAX};
use crate::memory::patch::parse_patch;
use crate::memory::refuse_to_remember;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearntFix {
    /// The failure that is gone.
    pub signature: String,
    /// The change that fixed it.
    pub fix: FailureFix,
}

/// Learns a fix from a change. `before` and `after` are the signatures of the errors before and
/// after it, `diff` is the change in the format of `git diff`.
///
/// Learns only if exactly one failure is gone and none is new, and if the change is small. Nothing
/// is learnt from a change that weakens checks, contains a secret, or touches the configuration of
/// checks or agents.
///
/// # Errors
///
/// The reason why nothing was learnt.
pub fn learn_fix(
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
    diff: &str,
) -> Result<LearntFix, String> {
    if !after.is_subset(before) {
        return Err("something new came".to_owned());
    }
    let mut gone = before.difference(after);
    let (Some(signature), None) = (gone.next(), gone.next()) else {
        let count = before.len() - after.len();
        return Err(format!("{count} failures went at once, so nobody knows what helped which"));
    };
    let files = parse_patch(diff);
    let lines: usize = files.iter().map(|file| file.changed_lines()).sum();
    if lines > LEARNT_LINES_MAX || files.len() > LEARNT_FILES_MAX {
        return Err(format!(
            "the change has {lines} lines in {} files: more than a remedy",
            files.len()
        ));
    }
    if lines == 0 {
        return Err("no line has changed".to_owned());
    }
    // Git rejects a patch without a final line break.
    let diff = format!("{}\n", diff.trim_end_matches('\n'));
    if diff.len() > FIX_BYTES_MAX {
        return Err(format!("the change has {} bytes: more than is remembered", diff.len()));
    }
    let fix = FailureFix {
        remedy: FixRemedy::Patch(diff),
        preconditions: Vec::new(),
        origin: FixOrigin::Learnt,
    };
    match refuse_to_remember(&fix) {
        Some(why) => Err(why),
        None => Ok(LearntFix { signature: signature.clone(), fix }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn patch(path: &str, added: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+{added}\n"
        )
    }

    #[test]
    fn one_failure_that_is_gone_teaches_its_remedy() {
        let learnt =
            learn_fix(&names(&["one", "two"]), &names(&["two"]), &patch("src/a.rs", "new"));
        let learnt = learnt.unwrap();
        assert_eq!(learnt.signature, "one");
        assert!(matches!(learnt.fix.remedy, FixRemedy::Patch(_)));
    }

    #[test]
    fn what_proves_nothing_teaches_nothing() {
        let fine = patch("src/a.rs", "new");
        let large = "+x\n".repeat(100);
        let large =
            format!("diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -0,0 +1,100 @@\n{large}");
        let cases: [(&[&str], &[&str], &str); 9] = [
            (&["one", "two"], &[], &fine),
            (&["one"], &["two"], &fine),
            (&["one"], &["one"], &fine),
            (&["one"], &[], ""),
            (&["one"], &[], &large),
            (&["one"], &[], &patch("data.json", &"x".repeat(FIX_BYTES_MAX))),
            (&["one"], &[], &patch("src/a.rs", "#[ignore]")),
            (&["one"], &[], &patch("clippy.toml", "x")),
            (&["one"], &[], &patch("src/a.rs", "let k = \"ghp_abcdefghijklmnop1234\";")),
        ];
        for (before, after, diff) in cases {
            assert!(learn_fix(&names(before), &names(after), diff).is_err(), "{diff}");
        }
    }
}

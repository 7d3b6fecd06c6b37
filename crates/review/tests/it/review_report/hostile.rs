//! A review that means harm.

use std::collections::BTreeMap;

use repertoire_review::change::{FileStatus, LineRange, ReviewChange};
use repertoire_review::finding::FindingFix;
use repertoire_review::record::{
    CallOutcome, CategoryRecord, FindingValidation, LeftOutReason, ReviewRecord,
};

use super::made_up::{change, changed, excerpt, review};

/// The same with everything that a model or a file could put into it.
pub(super) fn hostile() -> (ReviewRecord, ReviewChange) {
    let evil = evil();
    let mut change = change();
    let path = "src/a b|`c`,:%\"<i>&\u{202e}.rs";
    let lines = evil.lines().map(|line| format!("+{line}\n")).collect::<String>();
    change.files.push(changed(path, FileStatus::Added, &lines));
    let mut review = review();
    review.warnings.push(evil.clone());
    review.unresolved_skills[0].source = evil.clone();
    review.scope.branch = Some(evil.clone());
    review.scope.words = evil.clone();
    review.categories.push(CategoryRecord { key: "<b>|".into(), title: evil.clone() });
    for finding in &mut review.findings {
        finding.title = evil.clone();
        finding.description = evil.clone();
        finding.failure_scenario = evil.clone();
        finding.file = path.into();
        finding.lines = LineRange { first: 2, last: 3 };
        finding.excerpt = excerpt(&change, path, finding.lines);
        finding.categories = vec!["<b>|".into()];
        finding.agents = vec![evil.clone(); 2];
        finding.pattern = Some("x\n::error::".into());
        finding.details = BTreeMap::from([(evil.clone(), evil.clone())]);
        finding.validation = FindingValidation::Valid { reason: evil.clone() };
    }
    review.findings[0].fix = Some(FindingFix::Diff(evil.clone()));
    review.findings[1].fix = Some(FindingFix::Prompt(evil.clone()));
    review.findings[2].lines = LineRange { first: 4_000_000_000, last: 4_000_000_000 };
    review.findings[3].lines = LineRange { first: 0, last: 0 };
    review.insights[0].title = evil.clone();
    review.insights[0].insight = evil.clone();
    review.insights[0].file = "/etc/passwd".into();
    review.insights[0].related = vec![evil.clone()];
    review.test_recommendations[0].test = evil.clone();
    review.test_recommendations[0].file = Some(path.into());
    for left_out in &mut review.left_out {
        left_out.title = evil.clone();
        left_out.file = "../../etc/<b>".into();
        left_out.reason = evil.clone();
        left_out.why = LeftOutReason::Suppressed;
        left_out.fingerprint = Some("x".into());
    }
    review.calls[0].agent = evil.clone();
    review.calls[0].model = Some(evil.clone());
    review.calls[0].outcome = CallOutcome::Failed;
    review.calls[0].reason = Some(evil);
    (review, change)
}

/// What hostile texts are made of, a trick a line.
fn evil() -> String {
    let lines = [
        "::error file=a,line=1::pwned",
        "##[error]pwned </script><script>alert(1)</script>",
        "# pwned heading <img src=x onerror=alert(1)> <!-- gone",
        "| a | b |",
        "|---|---|",
        "![pixel](https://evil.example/p.png) [click](javascript:alert(1)) <https://evil.example>",
        "@everyone see #1, owner/repo#2, www.evil.example, mail@evil.example",
        "```` ``` unclosed `code",
        "\u{1b}[2J\u{1b}]8;;https://evil.example\u{7}link\u{202e}txet\u{2066}\u{0}\u{85}\u{feff}",
        "> quoted",
        "===",
        "- [ ] a task",
        "\"]]> &amp; &lt;b&gt; %0A%25 \\| \\` \\",
        "    indented | code",
    ];
    let mut out = lines.join("\n");
    out.push('\n');
    out.push_str(&"huge ".repeat(10_000));
    out
}

//! Reviews that nobody made: one that looks like a real one, and one that is clean.

use std::collections::BTreeMap;

use repertoire_review::change::{
    DiffHunk, FilePromptTier, FileStatus, HunkLine, LineKind, LineRange, ReviewChange,
    ReviewedFile, SkippedFile,
};
use repertoire_review::extract::{ReviewKind, ReviewSeverity};
use repertoire_review::finding::{FindingFix, Phase};
use repertoire_review::lineup::ModelTier;
use repertoire_review::record::*;

const USERS: &str = " use sqlx::{Row, SqlitePool};

 use crate::model::User;

 pub struct Users {
     pool: SqlitePool,
 }

 impl Users {
     pub fn new(pool: SqlitePool) -> Self {
         Users { pool }
     }

-    pub async fn by_email(&self, email: &str) -> sqlx::Result<Option<User>> {
-        sqlx::query_as(\"SELECT id, email FROM users WHERE email = ?\")
-            .bind(email)
-            .fetch_optional(&self.pool)
-            .await
-    }
+    /// Users whose e-mail address or name has the words in it.
+    pub async fn search(&self, words: &str, page: u32) -> Vec<User> {
+        let sql = format!(\"SELECT id, email FROM users WHERE email LIKE '%{words}%' LIMIT 20 OFFSET {}\", page * 20);
+        sqlx::query_as(&sql).fetch_all(&self.pool).await.unwrap()
+    }

     pub async fn count(&self) -> sqlx::Result<i64> {
         let row = sqlx::query(\"SELECT COUNT(*) FROM users\").fetch_one(&self.pool).await?;
         row.try_get(0)
     }

     pub async fn remove(&self, id: i64) -> sqlx::Result<()> {
         sqlx::query(\"DELETE FROM users WHERE id = ?\").bind(id).execute(&self.pool).await?;
         Ok(())
     }
 }
";

const SESSION: &str = "+//! Sessions as signed tokens.
+
+use std::time::{Duration, SystemTime, UNIX_EPOCH};
+
+use crate::sign::{hmac, verify};
+
+const SECRET: &str = \"s3cr3t-for-now-please-change\";
+/// How long a session holds.
+const TTL: Duration = Duration::from_secs(3600);
+
+pub struct Session {
+    pub user: i64,
+    pub expires: u64,
+}
+
+pub fn issue(user: i64, now: SystemTime) -> String {
+    let expires = now.duration_since(UNIX_EPOCH).unwrap_or_default() + TTL;
+    let body = format!(\"{user}.{}\", expires.as_secs());
+    format!(\"{body}.{}\", hmac(SECRET, &body))
+}
+
+pub fn check(token: &str, now: SystemTime) -> Option<Session> {
+    let (body, signature) = token.rsplit_once('.')?;
+    if !verify(SECRET, body, signature) {
+        return None;
+    }
+    let (user, expires) = body.split_once('.')?;
+    let session = Session { user: user.parse().ok()?, expires: expires.parse().ok()? };
+    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
+    (session.expires < now).then_some(session)
+}
+
+impl Session {
+    pub fn left(&self, now: SystemTime) -> Duration {
+        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
+        Duration::from_secs(self.expires.saturating_sub(now))
+    }
+}
";

const UPLOAD: &str = " import { api } from \"./api\";
 import { toast } from \"./toast\";

 export async function upload(files: File[]) {
+  if (files.length > 10) toast(\"Only the first ten files are uploaded.\");
   for (const file of files.slice(0, 10)) {
-    await api.put(`/files/${file.name}`, file);
+    api.put(`/files/${encodeURIComponent(file.name)}`, file);
   }
+  // TODO tell the user which of them failed
   toast(\"Uploaded.\");
 }
";

const MAIN: &str = " mod model;
+mod session;
 mod sign;
 mod users;

 fn main() {
     let runtime = tokio::runtime::Runtime::new().expect(\"threads can be started\");
     runtime.block_on(serve());
 }
";

/// A file out of all its lines, with their marks.
pub(super) fn changed(path: &str, status: FileStatus, marked: &str) -> ReviewedFile {
    let (mut old, mut new) = (0, 0);
    let mut all = Vec::new();
    for line in marked.lines() {
        let (kind, text) = match line.split_at_checked(1) {
            Some(("+", text)) => (LineKind::Added, text),
            Some(("-", text)) => (LineKind::Removed, text),
            Some((" ", text)) => (LineKind::Context, text),
            _ => (LineKind::Context, line),
        };
        old += u32::from(kind != LineKind::Added);
        new += u32::from(kind != LineKind::Removed);
        all.push(HunkLine {
            kind,
            old: (kind != LineKind::Added).then_some(old),
            new: (kind != LineKind::Removed).then_some(new),
            text: text.to_owned(),
        });
    }
    let is_text = |line: &&HunkLine| line.kind != LineKind::Removed;
    let text = all.iter().filter(is_text).map(|line| format!("{}\n", line.text)).collect();
    ReviewedFile {
        path: path.into(),
        old_path: None,
        status,
        hunks: hunks(&all),
        text,
        language: None,
        tier: FilePromptTier::Full,
    }
}

/// The lines that changed, with three around them.
fn hunks(all: &[HunkLine]) -> Vec<DiffHunk> {
    let is_near = |at: usize| {
        let near = &all[at.saturating_sub(3)..all.len().min(at + 4)];
        near.iter().any(|line| line.kind != LineKind::Context)
    };
    let mut hunks: Vec<DiffHunk> = Vec::new();
    let mut last = None;
    for at in (0..all.len()).filter(|at| is_near(*at)) {
        if last.is_none_or(|last| last + 1 != at) {
            let rest = &all[at..];
            hunks.push(DiffHunk {
                old_start: rest.iter().find_map(|line| line.old).unwrap_or_default(),
                new_start: rest.iter().find_map(|line| line.new).unwrap_or_default(),
                section: String::new(),
                lines: Vec::new(),
            });
        }
        hunks.last_mut().unwrap().lines.push(all[at].clone());
        last = Some(at);
    }
    hunks
}

/// What was reviewed.
pub(super) fn change() -> ReviewChange {
    let mut users = changed("src/users.rs", FileStatus::Modified, USERS);
    users.hunks[0].section = "impl Users {".to_owned();
    ReviewChange {
        files: vec![
            changed("src/main.rs", FileStatus::Modified, MAIN),
            changed("src/session.rs", FileStatus::Added, SESSION),
            users,
            changed("web/upload.ts", FileStatus::Modified, UPLOAD),
        ],
        skipped: skipped(),
    }
}

fn skipped() -> Vec<SkippedFile> {
    vec![
        SkippedFile { path: "web/logo.png".into(), reason: "binary".into(), missed: false },
        SkippedFile { path: "Cargo.lock".into(), reason: "generated".into(), missed: false },
    ]
}

/// A review of it as one looks that went mostly well.
pub(super) fn review() -> ReviewRecord {
    let change = change();
    let mut review = clean();
    review.findings = findings(&change);
    review.insights = vec![insight()];
    review.test_recommendations = vec![
        TestRecommendation {
            test: "A token that was issued an hour and a second ago is refused".into(),
            catches: Some("R3".into()),
            file: Some("tests/session.rs".into()),
        },
        TestRecommendation {
            test: "A search for `%' OR 1=1 --` finds nobody".into(),
            catches: Some("R1".into()),
            file: None,
        },
    ];
    review.skills.push(SkillRecord {
        name: "reviewing-security".into(),
        source: "reviewing-security".into(),
        kind: ReviewKind::Review,
        trusted: true,
    });
    review.unresolved_skills.push(UnresolvedSkill {
        source: "superpowers:nonexistent-skill".into(),
        reason: "no plugin `superpowers` is installed".into(),
        searched: vec!["~/.claude/plugins".into()],
    });
    review.warnings.push("AGENTS.md was cut to its first 20,000 characters".into());
    review.skipped = skipped();
    review.left_out = left_out();
    review.false_claims.push(FalseClaim {
        finding: "F2".into(),
        agent: "bug-detection-agent".into(),
        pattern: "missing_await".into(),
        reason: "the pattern does not match line 20".into(),
    });
    review.calls.extend(late_calls());
    review.planned.push(PlannedPhase { phase: Phase::Synthesis, calls: 3 });
    review.duration_ms = 141_300;
    review
}

/// A review that found nothing.
pub(super) fn clean() -> ReviewRecord {
    let files = change().files.into_iter().map(|file| FileRecord {
        digest: format!("sha256:{:08x}", file.text.len()),
        added: file.added_count(),
        removed: file.removed_count(),
        path: file.path,
        old_path: file.old_path,
        status: file.status,
    });
    let categories = [
        ("bugs", "Bugs"),
        ("error-handling", "Error Handling"),
        ("security", "Security"),
        ("test-coverage", "Test Coverage"),
    ];
    ReviewRecord {
        version: VERSION,
        unchanged: Vec::new(),
        still_open: Vec::new(),
        min_severity: ReviewSeverity::Suggestion,
        id: "0192f3a4-review".into(),
        subject: ReviewSubject::Code,
        depth: ReviewDepth::Quick,
        scope: ScopeRecord {
            words: "main...HEAD".into(),
            base: Some("1f0c2d9a".into()),
            head: Some("9be4417c".into()),
            branch: Some("feature/sessions".into()),
        },
        started_ms: 1_763_285_400_000,
        duration_ms: 48_200,
        files: files.collect(),
        skipped: Vec::new(),
        categories: categories
            .map(|(key, title)| CategoryRecord { key: key.into(), title: title.into() })
            .to_vec(),
        skills: Vec::new(),
        unresolved_skills: Vec::new(),
        warnings: Vec::new(),
        findings: Vec::new(),
        insights: Vec::new(),
        test_recommendations: Vec::new(),
        left_out: Vec::new(),
        false_claims: Vec::new(),
        calls: vec![
            call(Phase::Quick, "bug-detection-agent", ModelTier::Strong, 3, Some(0.0912)),
            call(Phase::Quick, "error-handling-agent", ModelTier::Fast, 1, Some(0.0131)),
            call(Phase::Quick, "security-agent", ModelTier::Strong, 4, Some(0.1044)),
            call(Phase::Quick, "test-coverage-agent", ModelTier::Fast, 0, Some(0.0118)),
        ],
        planned: vec![PlannedPhase { phase: Phase::Quick, calls: 4 }],
    }
}

fn call(
    phase: Phase,
    agent: &str,
    tier: ModelTier,
    found: u32,
    cost_usd: Option<f64>,
) -> ReviewCall {
    ReviewCall {
        phase,
        agent: agent.into(),
        tier,
        model: Some(if tier == ModelTier::Strong { "opus" } else { "sonnet" }.into()),
        outcome: CallOutcome::Completed,
        reason: None,
        answered: found,
        admitted: found.saturating_sub(1),
        duration_ms: 21_400 + u64::from(found) * 3_100,
        input_tokens: 18_240,
        output_tokens: 900 + u64::from(found) * 310,
        cost_usd,
    }
}

fn late_calls() -> Vec<ReviewCall> {
    let mut failed = call(Phase::Synthesis, "bugs+test-coverage", ModelTier::Fast, 0, None);
    failed.outcome = CallOutcome::Failed;
    failed.reason = Some("no answer within 180 s".into());
    (failed.duration_ms, failed.input_tokens, failed.output_tokens) = (180_000, 0, 0);
    let mut skipped = call(Phase::Synthesis, "bugs+error-handling", ModelTier::Fast, 0, None);
    skipped.outcome = CallOutcome::Skipped;
    skipped.reason = Some("nothing was found in one of them".into());
    (skipped.duration_ms, skipped.input_tokens, skipped.output_tokens) = (0, 0, 0);
    skipped.model = None;
    let mut validation = call(Phase::Validation, "src/session.rs", ModelTier::Strong, 3, None);
    validation.model = None;
    vec![
        call(Phase::Synthesis, "bugs+security", ModelTier::Fast, 2, Some(0.0083)),
        skipped,
        failed,
        validation,
        call(Phase::Validation, "src/users.rs", ModelTier::Strong, 2, Some(0.0417)),
    ]
}

pub(super) fn excerpt(change: &ReviewChange, path: &str, lines: LineRange) -> Vec<ExcerptLine> {
    let Some(file) = change.find_file(path.into()) else { return Vec::new() };
    let shown = lines.widened_by(2);
    let numbered = (1..).zip(file.text.lines());
    let within = numbered.filter(|(number, _)| shown.first <= *number && *number <= shown.last);
    let added = |number: u32| {
        let mut all = file.hunks.iter().flat_map(|hunk| &hunk.lines);
        all.any(|line| line.kind == LineKind::Added && line.new == Some(number))
    };
    within
        .map(|(number, text)| ExcerptLine {
            number,
            text: text.to_owned(),
            cited: lines.overlaps(LineRange::from_line(number)),
            added: added(number),
        })
        .collect()
}

fn finding(
    change: &ReviewChange,
    id: u32,
    severity: ReviewSeverity,
    category: &str,
    place: (&str, u32, u32),
) -> ReportedFinding {
    let (path, first, last) = place;
    let lines = LineRange { first, last };
    ReportedFinding {
        id: format!("R{id}"),
        fingerprint: format!("{id:02x}a94a8fe5ccb19b"),
        line_prints: Vec::new(),
        title: String::new(),
        file: path.into(),
        lines,
        categories: vec![category.into()],
        severity,
        description: String::new(),
        failure_scenario: String::new(),
        confidence: 0.9,
        fix: None,
        pattern: None,
        details: BTreeMap::new(),
        also: Vec::new(),
        agents: vec![format!("{category}-agent")],
        validation: FindingValidation::Accepted,
        members: vec![format!("F{id}")],
        excerpt: excerpt(change, path, lines),
    }
}

fn findings(change: &ReviewChange) -> Vec<ReportedFinding> {
    let [injection, secret, expiry] = grave(change);
    let [panic, unawaited, untested] = mild(change);
    vec![injection, secret, expiry, panic, unawaited, untested]
}

fn grave(change: &ReviewChange) -> [ReportedFinding; 3] {
    use ReviewSeverity::{Critical, Major};
    let injection = ReportedFinding {
        title: "The search puts user input into SQL".into(),
        description: "`words` comes straight from the query string and is formatted into the statement. A quote \
            ends the literal, and whatever follows is SQL.\n\nThe function that this one replaces bound its \
            parameter:\n\n- `by_email` used `?` and `.bind(email)`\n- `search` uses neither"
            .into(),
        failure_scenario: "A request for `/users?q=%27%20UNION%20SELECT%20id,password%20FROM%20users--` answers \
            with the password hashes of all users."
            .into(),
        fix: Some(FindingFix::Diff(
            "-        let sql = format!(\"SELECT id, email FROM users WHERE email LIKE '%{words}%' LIMIT 20 OFFSET {}\", page * 20);\n\
             -        sqlx::query_as(&sql).fetch_all(&self.pool).await.unwrap()\n\
             +        let like = format!(\"%{words}%\");\n\
             +        let sql = \"SELECT id, email FROM users WHERE email LIKE ? LIMIT 20 OFFSET ?\";\n\
             +        sqlx::query_as(sql).bind(like).bind(page * 20).fetch_all(&self.pool).await.unwrap()"
                .into(),
        )),
        details: BTreeMap::from([
            ("attack_vector".to_owned(), "the parameter `q` of `/users`, without a login".to_owned()),
            ("impact".to_owned(), "every row of every table".to_owned()),
        ]),
        categories: vec!["security".into(), "bugs".into()],
        also: Vec::new(),
        agents: vec!["security-agent".into(), "bug-detection-agent".into()],
        members: vec!["F1".into(), "F4".into()],
        validation: FindingValidation::Valid {
            reason: "`words` reaches the statement without binding or escaping".into(),
        },
        ..finding(change, 1, Critical, "security", ("src/users.rs", 16, 17))
    };
    let secret = ReportedFinding {
        title: "The key that signs sessions is in the source".into(),
        description: "Whoever can read the repository can sign sessions for any user.".into(),
        failure_scenario: "A former contractor issues a token for user 1 and is an administrator.".into(),
        pattern: Some("hardcoded_secret".into()),
        fix: Some(FindingFix::Prompt(
            "Read the key from the configuration (`config.session_key`), refuse to start without it, and pass it \
             to `issue` and `check` as an argument."
                .into(),
        )),
        validation: FindingValidation::Pattern,
        ..finding(change, 2, Critical, "security", ("src/session.rs", 7, 7))
    };
    let expiry = ReportedFinding {
        title: "Sessions hold only after they have expired".into(),
        description: "`expires` is in seconds and `now` in milliseconds, and the comparison is the wrong way \
            round, so both mistakes together accept every token that was ever signed."
            .into(),
        failure_scenario: "A token that was issued a year ago is accepted; nobody is ever logged out.".into(),
        fix: Some(FindingFix::Diff(
            "@@ -29,2 +29,2 @@\n\
             -    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;\n\
             -    (session.expires < now).then_some(session)\n\
             +    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();\n\
             +    (now < session.expires).then_some(session)"
                .into(),
        )),
        categories: vec!["bugs".into(), "security".into(), "test-coverage".into()],
        agents: ["bug-detection-agent", "security-agent", "test-coverage-agent"].map(Into::into).into(),
        validation: FindingValidation::Valid { reason: String::new() },
        ..finding(change, 3, Major, "bugs", ("src/session.rs", 29, 30))
    };
    [injection, secret, expiry]
}

fn mild(change: &ReviewChange) -> [ReportedFinding; 3] {
    use ReviewSeverity::{Minor, Suggestion};
    let panic = ReportedFinding {
        title: "A database that is busy takes the request down".into(),
        description: "The result is unwrapped, while the other functions return it.".into(),
        failure_scenario:
            "SQLite answers `database is locked`, and the task of the request panics.".into(),
        validation: FindingValidation::Downgraded {
            from: ReviewSeverity::Major,
            reason: "the server catches panics of its handlers".into(),
        },
        fix: Some(FindingFix::Prompt("Return `sqlx::Result<Vec<User>>`, as `count` does.".into())),
        ..finding(change, 4, Minor, "error-handling", ("src/users.rs", 17, 17))
    };
    let unawaited = ReportedFinding {
        title: "Uploads are not waited for".into(),
        description: "The `await` has gone, so the toast comes before the files are there.".into(),
        failure_scenario:
            "The user closes the tab on \"Uploaded.\" and half of the files are lost.".into(),
        also: Vec::new(),
        agents: vec!["bug-detection-agent".into()],
        fix: Some(FindingFix::Diff(
            "- api.put(`/files/${file.name}`, file)\n+ await api.put(…)".into(),
        )),
        validation: FindingValidation::Unverified { reason: "the validator did not answer".into() },
        ..finding(change, 5, Minor, "bugs", ("web/upload.ts", 7, 7))
    };
    let untested = ReportedFinding {
        title: "Nothing tests more than ten files".into(),
        description: "The eleventh file is dropped with a toast that nobody checks.".into(),
        failure_scenario: "A later change to `slice` drops files without a word.".into(),
        ..finding(change, 6, Suggestion, "test-coverage", ("web/upload.ts", 5, 6))
    };
    [panic, unawaited, untested]
}

fn insight() -> ReviewInsight {
    ReviewInsight {
        id: "I1".into(),
        title: "A stolen key cannot be taken back".into(),
        categories: ["bugs".into(), "security".into()],
        insight: "The key is in the source and tokens never expire: whoever has seen the repository once has \
            access for ever, and changing the key is the only way to end it."
            .into(),
        severity: ReviewSeverity::Critical,
        file: "src/session.rs".into(),
        line: 30,
        related: vec!["R2".into(), "R3".into()],
        validation: FindingValidation::Valid { reason: "both findings are about the same tokens".into() },
    }
}

fn left_out() -> Vec<LeftOutFinding> {
    let one =
        |title: &str, file: &str, line: u32, why: LeftOutReason, reason: &str| LeftOutFinding {
            title: title.into(),
            file: file.into(),
            lines: Some(LineRange::from_line(line)),
            severity: Some(ReviewSeverity::Minor),
            agent: "bug-detection-agent".into(),
            phase: Phase::Quick,
            fingerprint: None,
            rule: None,
            why,
            reason: reason.into(),
        };
    let mut suppressed = one(
        "A TODO without an issue",
        "web/upload.ts",
        9,
        LeftOutReason::Suppressed,
        "`rep review suppress` by mk: tracked elsewhere",
    );
    suppressed.fingerprint = Some("77de68daecd823ba".into());
    vec![
        one(
            "`left` may overflow",
            "src/session.rs",
            36,
            LeftOutReason::Invalid,
            "`saturating_sub` is used",
        ),
        one("`issue` may panic", "src/session.rs", 17, LeftOutReason::Invalid, "it has a default"),
        one(
            "No index on `email`",
            "db/schema.sql",
            3,
            LeftOutReason::NotInTheChange,
            "db/schema.sql",
        ),
        suppressed,
    ]
}

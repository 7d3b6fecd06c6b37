//! What patterns cost: 200 of them over a change of 10,000 lines, beside `rg` with the same ones, one after the other.
//!
//! Most of the time of `rg` is that it starts 200 times, so what says more about the work itself is the line with every
//! pattern run by itself in this process.
//!
//! `cargo bench -p repertoire-review --bench patterns`. It fails beyond the limits. Without `rg` on the path only the time
//! is held to its limit.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark prints, and may stop"
)]

use std::collections::BTreeSet;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use repertoire_git::diff;
use repertoire_review::change::{FilePromptTier, FileStatus, ReviewChange, ReviewedFile};
use repertoire_review::extract::{ReviewKind, ReviewPattern, ReviewSkill};
use repertoire_review::patterns::{PatternSet, PatternSource};

const FILES: usize = 40;
const LINES_PER_FILE: usize = 250;
const PATTERNS: usize = 200;
const ROUNDS: usize = 21;
const RG_ROUNDS: usize = 3;
const LIMIT: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let change = change();
    let skill = skill();
    let lines: usize = change.files.iter().map(|file| file.added_count()).sum();
    assert_eq!((lines, skill.auto_validated_patterns.len()), (FILES * LINES_PER_FILE, PATTERNS));
    let source = [PatternSource { skill: &skill, category: "security", trusted: true }];
    let set = PatternSet::new(&source);
    assert_eq!(set.len(), PATTERNS, "{:?}", set.unusable());
    let hits = set.scan_change(&change, None).hits.len();
    let bytes: usize = change.files.iter().map(|file| file.text.len()).sum();
    println!("{lines} lines ({bytes} bytes), {PATTERNS} patterns, {hits} hits");

    assert_eq!(hits, one_by_one(&change, &skill), "looking for fixed texts first loses nothing");
    let plain = median(RG_ROUNDS, || one_by_one(&change, &skill));
    println!("{:<52} {:>9.2} ms", "each pattern by itself, in this process", ms(plain));
    let warm = median(ROUNDS, || set.scan_change(&change, None).hits.len());
    let cold = median(ROUNDS, || PatternSet::new(&source).scan_change(&change, None).hits.len());
    println!("{:<52} {:>9.2} ms", "scan, patterns compiled before", ms(warm));
    println!("{:<52} {:>9.2} ms", "compile what is needed, and scan", ms(cold));
    let fast = cold <= LIMIT;
    println!("{:<52} {:>9.2} ms: {}", "limit", ms(LIMIT), said(fast));
    let no_slower = match rg(&change, &skill) {
        Some(rg) => {
            let ratio = cold.as_secs_f64() / rg.as_secs_f64();
            println!("{:<52} {:>9.2} ms", "rg, one pattern after the other", ms(rg));
            println!("{:<52} {ratio:>9.3}   : {}", "ratio (1 at most)", said(ratio <= 1.0));
            ratio <= 1.0
        }
        None => {
            println!("rg is not on the path: nothing to compare with");
            true
        }
    };
    if fast && no_slower { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn said(fine: bool) -> &'static str {
    if fine { "held" } else { "PASSED" }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn median(rounds: usize, mut run: impl FnMut() -> usize) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort();
    times[rounds / 2]
}

/// As simple as it gets: every pattern is compiled and run on every file. How many places there are.
fn one_by_one(change: &ReviewChange, skill: &ReviewSkill) -> usize {
    let mut places = BTreeSet::new();
    for (at, pattern) in skill.auto_validated_patterns.iter().enumerate() {
        let text = pattern.pattern.as_deref().unwrap();
        let regex = regex::RegexBuilder::new(text).multi_line(true).build().unwrap();
        for file in &change.files {
            let line = |offset: usize| file.text[..offset].matches('\n').count();
            let found = regex.find_iter(&file.text);
            places.extend(
                found.map(|found| (at, &file.path, line(found.start()), line(found.end() - 1))),
            );
        }
    }
    places.len()
}

fn rg(change: &ReviewChange, skill: &ReviewSkill) -> Option<Duration> {
    let there = Command::new("rg").arg("--version").stdout(Stdio::null()).status();
    there.ok().filter(std::process::ExitStatus::success)?;
    let keep = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(keep.path()).unwrap();
    for file in &change.files {
        repertoire_text::fs::write_atomic(&dir.join(&file.path), file.text.as_bytes()).unwrap();
    }
    let run = || {
        let mut found = 0;
        for pattern in &skill.auto_validated_patterns {
            let text = pattern.pattern.as_deref().unwrap();
            let status = Command::new("rg")
                .args(["--no-config", "--no-ignore", "--line-number", "--regexp", text, "."])
                .current_dir(dir)
                .stdout(Stdio::null())
                .status()
                .unwrap();
            assert_ne!(status.code(), Some(2), "{text}");
            found += usize::from(status.success());
        }
        found
    };
    Some(median(RG_ROUNDS, run))
}

/// The same numbers every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const NAMES: &[&str] = &[
    "user", "order", "invoice", "session", "token", "request", "response", "config", "client",
    "buffer", "index", "result", "account", "payment", "cache", "worker", "queue", "message",
    "record", "policy",
];
const VERBS: &[&str] = &[
    "load", "store", "update", "remove", "validate", "parse", "render", "send", "receive", "merge",
    "compute", "resolve", "encode", "decode", "schedule",
];

/// Lines as they are in code; `{n}`, `{m}` and `{v}` are names, `{d}` is a number.
const RUST: &[&str] = &[
    "    pub fn {v}_{n}(&mut self, {m}: &str) -> Result<(), Error> {",
    "        let {n} = self.{m}s.get({d}).ok_or(Error::Missing)?;",
    "        if {n}.is_empty() && self.{m}_count > {d} {",
    "            return Err(Error::Invalid({n}.to_string()));",
    "        self.{n}s.push({m}.clone());",
    "        tracing::debug!(?{n}, \"{v} the {m}\");",
    "        match {n}.kind() {",
    "            Kind::{v} => self.{v}_{m}({n}),",
    "    // The {n} may be gone by the time the {m} is looked at.",
    "        for {n} in {m}s.iter().filter(|{n}| {n}.age > {d}) {",
    "        let {n}: Vec<_> = {m}s.into_iter().map(|{m}| {m}.{v}()).collect();",
    "    }",
    "",
    "        let value = {n}.{v}().unwrap();",
];
const PYTHON: &[&str] = &[
    "def {v}_{n}({m}, limit={d}):",
    "    \"\"\"Returns the {n} of a {m}.\"\"\"",
    "    {n} = {m}.get(\"{n}_id\", None)",
    "    if not {n} or {n}[\"{m}\"] > {d}:",
    "        raise ValueError(f\"no {n} for {{m}}\")",
    "    for {n} in {m}s:",
    "        logger.info(\"{v} %s\", {n})",
    "    return [{n}.{v}() for {n} in {m}s if {n}.active]",
    "    cursor.execute(\"SELECT id, name FROM {n}s WHERE id = %s\", ({m},))",
    "    with open(path, \"r\", encoding=\"utf-8\") as {n}:",
    "",
    "    password = os.environ[\"{n}_PASSWORD\"]",
];
const TYPESCRIPT: &[&str] = &[
    "export async function {v}{n}({m}: string): Promise<void> {",
    "  const {n} = await this.{m}Service.{v}({d});",
    "  if (!{n} || {n}.{m}s.length === 0) {",
    "    throw new Error(`no {n} in ${{m}}`);",
    "  return {n}s.map(({n}) => ({ id: {n}.id, {m}: {n}.{m} ?? null }));",
    "  useEffect(() => { {v}{n}(); }, [{m}]);",
    "  console.log(\"{v}\", {n});",
    "  <Button onClick={() => {v}({n})} disabled={!{m}}>{n}</Button>",
    "  // The {n} is loaded when the {m} changes.",
    "  const [{n}, set{n}] = useState<{m} | null>(null);",
    "  element.innerHTML = render{n}({m});",
    "}",
    "",
];

fn change() -> ReviewChange {
    let mut dice = Dice(7);
    let kinds = [("rs", RUST), ("py", PYTHON), ("ts", TYPESCRIPT)];
    let file = |at: usize| {
        let (ending, lines) = kinds[at % kinds.len()];
        let mut text = String::new();
        for _ in 0..LINES_PER_FILE {
            let line = dice.pick(lines);
            let line = line
                .replace("{n}", dice.pick(NAMES))
                .replace("{m}", dice.pick(NAMES))
                .replace("{v}", dice.pick(VERBS))
                .replace("{d}", &dice.roll(1_000).to_string());
            text.push_str(&line);
            text.push('\n');
        }
        ReviewedFile {
            path: format!("src/file_{at:02}.{ending}").into(),
            old_path: None,
            status: FileStatus::Added,
            hunks: diff::whole_file_hunks(&text),
            text,
            language: None,
            tier: FilePromptTier::Full,
        }
    };
    ReviewChange { files: (0..FILES).map(file).collect(), skipped: Vec::new() }
}

/// Names of what should not be in code as it is.
const SECRETS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "api_key",
    "apikey",
    "access_token",
    "auth_token",
    "client_secret",
    "private_key",
    "aws_secret_access_key",
    "db_password",
    "encryption_key",
    "signing_key",
    "webhook_secret",
    "jwt_secret",
    "session_secret",
    "master_key",
    "smtp_password",
    "admin_password",
    "refresh_token",
];

/// Calls that deserve a look.
const CALLS: &[&str] = &[
    "eval",
    "exec",
    "system",
    "popen",
    "os\\.system",
    "subprocess\\.call",
    "pickle\\.loads",
    "yaml\\.load",
    "marshal\\.loads",
    "Runtime\\.getRuntime",
    "ProcessBuilder",
    "unserialize",
    "shell_exec",
    "passthru",
    "assert",
    "document\\.write",
    "setTimeout",
    "setInterval",
    "Function",
    "vm\\.runInContext",
    "child_process\\.exec",
    "dangerouslySetInnerHTML",
    "transmute",
    "from_raw_parts",
    "set_var",
    "strcpy",
    "strcat",
    "sprintf",
    "gets",
    "tmpnam",
    "mktemp",
    "rand",
    "srand",
    "Math\\.random",
    "md5",
    "sha1",
    "DES\\.new",
    "ARC4\\.new",
    "crypt",
    "create_function",
    "preg_replace",
    "extract",
    "parse_str",
    "include_once",
    "require_once",
    "XMLDecoder",
    "ObjectInputStream",
    "readObject",
    "Thread\\.stop",
    "System\\.exit",
];

/// Beginnings of real keys.
const KEYS: &[&str] = &[
    r"AKIA[0-9A-Z]{16}",
    r"ghp_[A-Za-z0-9]{36}",
    r"gho_[A-Za-z0-9]{36}",
    r"glpat-[A-Za-z0-9_-]{20}",
    r"xox[abp]-[0-9A-Za-z-]{10,}",
    r"sk_live_[0-9a-zA-Z]{24}",
    r"rk_live_[0-9a-zA-Z]{24}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"ya29\.[0-9A-Za-z_-]+",
    r"-----BEGIN (RSA|EC|OPENSSH) PRIVATE KEY-----",
    r"SG\.[A-Za-z0-9_-]{22}\.",
    r"npm_[A-Za-z0-9]{36}",
    r"dop_v1_[a-f0-9]{64}",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ",
    r"AC[a-f0-9]{32}",
];

/// What is left behind, or easily wrong.
const MISC: &[&str] = &[
    r"\.unwrap\(\)",
    r"\.expect\(",
    r"panic!\(",
    r"todo!\(",
    r"unimplemented!\(",
    r"unsafe\s*\{",
    r"dbg!\(",
    r"println!\(",
    r"console\.(log|debug|trace)\(",
    r"\bdebugger\b",
    r"print\(",
    r"import\s+pdb",
    r"pdb\.set_trace",
    r"binding\.pry",
    r"var_dump\(",
    r"\bTODO\b",
    r"\bFIXME\b",
    r"\bXXX\b",
    r"except\s*:",
    r"except\s+Exception\s*:\s*pass",
    r"catch\s*\([^)]*\)\s*\{\s*\}",
    r"catch\s*\(\s*Throwable",
    r"==\s*None",
    r"!=\s*None",
    r"==\s*True",
    r"\.innerHTML\s*=",
    r"\.outerHTML\s*=",
    r"insertAdjacentHTML\(",
    r"v-html=",
    r"target=._blank.",
    r"(?i)select\s.+\sfrom\s.+\+",
    r"(?i)insert\s+into\s.+\+",
    r"(?i)delete\s+from\s.+\+",
    r#"execute\(\s*f["']"#,
    r#"execute\(\s*["'].*%s.*["']\s*%"#,
    r"\$\{.*\}.*(?i)where",
    r"verify\s*=\s*False",
    r"InsecureSkipVerify:\s*true",
    r"rejectUnauthorized:\s*false",
    r"danger_accept_invalid_certs\(true\)",
    r"(?i)http://[a-z0-9.-]+",
    r"0\.0\.0\.0",
    r"chmod\s+777",
    r"0o?777",
    r"Access-Control-Allow-Origin.*\*",
    r"(?i)debug\s*=\s*true",
    r"@ts-ignore",
    r"@ts-nocheck",
    r"eslint-disable",
    r"#\s*noqa",
    r"#\s*type:\s*ignore",
    r"#\[allow\(",
    r"//\s*nolint",
    r":\s*any\b",
    r"as\s+any\b",
    r"useEffect\(\s*async",
    r"\.then\(\s*\)",
    r"await\s+Promise\.all\(\s*\[\s*\]",
    r"sleep\(\s*\d{3,}\s*\)",
    r"Thread\.sleep\(",
    r"time\.sleep\(",
    r"while\s*\(?\s*true\s*\)?",
    r"for\s*\(;;\)",
    r"\bgoto\b",
    r"malloc\(",
    r"free\(",
    r"memcpy\(",
    r"alloca\(",
    r"new\s+Date\(\)",
    r"datetime\.now\(\)",
    r"SystemTime::now\(\)",
    r"float\s*==",
    r"\bgetattr\(",
    r"__import__\(",
    r"globals\(\)",
    r"lambda:\s*None",
    r"def\s+\w+\([^)]*=\s*\[\]",
    r"def\s+\w+\([^)]*=\s*\{\}",
    r"from\s+\w+\s+import\s+\*",
    r"SELECT\s+\*",
    r"(?i)drop\s+table",
    r"(?i)truncate\s+table",
    r"(?i)grant\s+all",
    r"jwt\.decode\(.*verify",
    r"algorithm.*none",
    r"ECB",
    r"MODE_CBC",
    r"iv\s*=\s*b",
    r"salt\s*=\s*b",
    r"random\.(random|randint|choice)\(",
    r"hashlib\.(md5|sha1)",
    r"MessageDigest\.getInstance\(.(MD5|SHA-1).",
    r"Cipher\.getInstance\(.DES",
    r"TrustAllCerts",
    r"ALLOWED_HOSTS.*\*",
    r"csrf_exempt",
    r"AllowAny",
    r"permitAll\(\)",
    r"ROLE_ADMIN",
    r"is_admin\s*=",
    r"sudo\s",
    r"rm\s+-rf",
    r"curl\s.*\|\s*sh",
    r"wget\s.*\|\s*sh",
    r"docker\.sock",
    r"privileged:\s*true",
    r"hostNetwork:\s*true",
    r"runAsUser:\s*0",
    r"allowPrivilegeEscalation:\s*true",
    r"SameSite\s*=\s*None",
    r"httpOnly:\s*false",
    r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}",
    r"\b[0-9a-f]{40}\b",
    r"^\s*(<{7}|>{7})\s",
    r"(?i)basic\s+[a-z0-9+/]{16,}={0,2}",
];

fn skill() -> ReviewSkill {
    let secrets =
        SECRETS.iter().map(|name| format!(r#"(?i)\b{name}\b\s*[:=]\s*["'][^"'\s]{{6,}}["']"#));
    let calls = CALLS.iter().map(|name| format!(r"\b{name}\s*\("));
    let fixed = KEYS.iter().chain(MISC).map(|text| (*text).to_owned());
    let pattern = |(at, text): (usize, String)| ReviewPattern {
        id: format!("pattern_{at}"),
        pattern: Some(text),
        description: "something to look at".to_owned(),
        severity: None,
        files: Vec::new(),
        unusable: None,
    };
    ReviewSkill {
        name: "measured".to_owned(),
        source: "measured".to_owned(),
        kind: ReviewKind::Review,
        primary_agent: None,
        focus_areas: Vec::new(),
        auto_validated_patterns: secrets
            .chain(calls)
            .chain(fixed)
            .take(PATTERNS)
            .enumerate()
            .map(pattern)
            .collect(),
        false_positive_rules: Vec::new(),
        priority_files: None,
        methodology: None,
    }
}

//! Recorded streams of real CLIs, unchanged and broken in every way that a pipe can break them.

use std::fmt::Write as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::cli::{CliDefinition, CliInvocation};
use super::{
    AgentFreedom, BackendJob, BackendRestrictions, BackendResult, claude, codex, gemini, opencode,
};
use crate::effect::EffectSet;
use crate::event::{AgentRunStatus, EventKind};
use repertoire_sandbox::process::{
    CapturedStream, ProcessInput, ProcessResult, ProcessStopReason, UsageLimits,
};

const NOW: u64 = 1_800_000_000_000;

macro_rules! stream {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/streams/", $name, ".jsonl"))
    };
}

const STREAMS: &[(CliDefinition, &str)] = &[
    (claude::CLI, stream!("claude-tool")),
    (claude::CLI, stream!("claude-429")),
    (claude::CLI, stream!("claude-500")),
    (claude::CLI, stream!("claude-429-exhausted")),
    (claude::CLI, stream!("claude-denied")),
    (claude::CLI, stream!("claude-schema")),
    (claude::CLI, stream!("claude-max-turns")),
    (claude::CLI, stream!("claude-budget")),
    (codex::CLI, stream!("codex-tool")),
    (codex::CLI, stream!("codex-429")),
    (codex::CLI, stream!("codex-schema")),
    (opencode::CLI, stream!("opencode-tool")),
    (opencode::CLI, stream!("opencode-rejected")),
    (opencode::CLI, stream!("opencode-500")),
    (gemini::CLI, stream!("gemini-tool")),
];

fn ended(code: i32) -> ProcessResult {
    ProcessResult {
        code: Some(code),
        signal: None,
        stopped: None,
        stdout: CapturedStream::default(),
        stderr: CapturedStream::default(),
        duration: Duration::from_secs(2),
    }
}

fn read(
    cli: CliDefinition,
    stream: &[u8],
    ended: &ProcessResult,
) -> (Vec<EventKind>, u64, BackendResult) {
    let mut parser = (cli.parser)();
    let events =
        stream.split(|byte| *byte == b'\n').flat_map(|line| parser.parse_line(line)).collect();
    let garbage = parser.garbage_lines();
    (events, garbage, parser.finish(ended, NOW))
}

/// Summarises a whole stream in short lines.
fn told(cli: CliDefinition, stream: &str, code: i32) -> String {
    let (events, garbage, end) = read(cli, stream.as_bytes(), &ended(code));
    let mut text = String::new();
    for event in events {
        let line = match event {
            EventKind::Text { text } => format!("text: {text}"),
            EventKind::ToolCall { tool, subject, .. } => format!("call {tool}: {subject}"),
            EventKind::ToolResult { tool, is_error, summary, bytes, duration_ms, .. } => {
                let start: String = summary.trim_end().chars().take(40).collect();
                format!("result {tool}: error={is_error} {bytes} bytes {duration_ms} ms: {start}")
            }
            EventKind::Denied { tool, subject, .. } => format!("denied {tool}: {subject}"),
            EventKind::Retry { reason, attempt, after_ms, .. } => {
                format!("retry {attempt} after {after_ms} ms: {reason}")
            }
            EventKind::Warning { message } => format!("warning: {message}"),
            EventKind::Answer { stop, .. } => format!("answer: {stop}"),
            EventKind::Other { name, .. } => format!("other: {name}"),
            other => format!("{other:?}"),
        };
        writeln!(text, "{line}").expect("a String takes all");
    }
    let usage = end.usage;
    writeln!(
        text,
        "{:?} after {} turns, {} in, {} out, {:?} $, {} denied, garbage {garbage}",
        end.status,
        end.iterations,
        usage.input_tokens,
        usage.output_tokens,
        end.cost_usd,
        end.denials.len()
    )
    .expect("a String takes all");
    writeln!(
        text,
        "text={:?} structured={:?} error={:?}",
        end.text,
        end.structured.map(|v| v.to_string()),
        end.error
    )
    .expect("a String takes all");
    text
}

#[test]
fn claude_uses_a_tool_and_answers() {
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-tool"), 0));
}

#[test]
fn claude_tries_again_and_answers() {
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-429"), 0));
}

#[test]
fn claude_says_success_and_means_failure() {
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-500"), 1));
}

#[test]
fn claude_has_used_up_its_allowance() {
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-429-exhausted"), 1));
}

#[test]
fn claude_was_not_allowed() {
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-denied"), 0));
}

#[test]
fn claude_answers_with_json() {
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-schema"), 0));
}

#[test]
fn claude_stops_at_its_limits() {
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-max-turns"), 1));
    insta::assert_snapshot!(told(claude::CLI, stream!("claude-budget"), 1));
}

#[test]
fn codex_uses_a_tool_and_answers() {
    insta::assert_snapshot!(told(codex::CLI, stream!("codex-tool"), 0));
}

#[test]
fn codex_tries_again_and_gives_up() {
    insta::assert_snapshot!(told(codex::CLI, stream!("codex-429"), 1));
}

#[test]
fn opencode_uses_a_tool_and_answers() {
    insta::assert_snapshot!(told(opencode::CLI, stream!("opencode-tool"), 0));
}

#[test]
fn opencode_ends_without_an_answer_when_a_call_is_rejected() {
    insta::assert_snapshot!(told(opencode::CLI, stream!("opencode-rejected"), 0));
}

#[test]
fn opencode_fails() {
    insta::assert_snapshot!(told(opencode::CLI, stream!("opencode-500"), 1));
}

#[test]
fn gemini_uses_a_tool_and_answers() {
    insta::assert_snapshot!(told(gemini::CLI, stream!("gemini-tool"), 0));
}

#[test]
fn a_good_result_with_a_bad_exit_is_a_failure_unless_we_ended_it() {
    for (cli, stream) in [
        (claude::CLI, stream!("claude-tool")),
        (codex::CLI, stream!("codex-tool")),
        (opencode::CLI, stream!("opencode-tool")),
        (gemini::CLI, stream!("gemini-tool")),
    ] {
        let status = |ended: &ProcessResult| read(cli, stream.as_bytes(), ended).2.status;
        assert_eq!(status(&ended(0)), AgentRunStatus::Done, "{}", cli.name);
        assert_eq!(status(&ended(1)), AgentRunStatus::Failed, "{}", cli.name);
        let killed = ProcessResult { code: None, signal: Some(9), ..ended(0) };
        assert_eq!(status(&killed), AgentRunStatus::Failed, "{}", cli.name);
        let by_us = ProcessResult { stopped: Some(ProcessStopReason::AfterResult), ..killed };
        assert_eq!(status(&by_us), AgentRunStatus::Done, "{}", cli.name);
        let cut_off = ProcessResult { stopped: Some(ProcessStopReason::Cancelled), ..ended(0) };
        assert_eq!(status(&cut_off), AgentRunStatus::Cancelled, "{}", cli.name);
    }
}

#[test]
fn a_stream_without_a_result_is_a_failure_that_says_why() {
    let stderr = CapturedStream { bytes: b"\x1b[31mno key\x1b[0m\n".to_vec(), total: 16 };
    let end = read(claude::CLI, b"", &ProcessResult { stderr, ..ended(0) }).2;
    assert_eq!(end.status, AgentRunStatus::Failed);
    assert_eq!(
        end.error.as_deref(),
        Some("it exited with code 0 without a result; it complained: no key")
    );
    let stopped = |stopped| {
        read(codex::CLI, b"", &ProcessResult { stopped: Some(stopped), ..ended(0) }).2.status
    };
    assert_eq!(stopped(ProcessStopReason::Idle), AgentRunStatus::Failed);
    assert_eq!(stopped(ProcessStopReason::Absolute), AgentRunStatus::Limited);
    assert_eq!(stopped(ProcessStopReason::Cancelled), AgentRunStatus::Cancelled);
}

#[test]
fn an_allowance_that_is_used_up_says_when_it_is_filled_again() {
    let claude = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794800000,"rateLimitType":"five_hour"},"session_id":"s"}
{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit · resets 3pm (Europe/London)","num_turns":1}"#;
    let end = read(claude::CLI, claude.as_bytes(), &ended(1)).2;
    assert_eq!((end.status, end.resets_at_ms), (AgentRunStatus::Paused, Some(1_794_800_000_000)));
    let codex = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again in 2 hours 5 minutes."}}"#;
    let end = read(codex::CLI, codex.as_bytes(), &ended(1)).2;
    assert_eq!((end.status, end.resets_at_ms), (AgentRunStatus::Paused, Some(NOW + 7_500_000)));
}

#[test]
fn an_answer_about_limits_is_not_a_limit() {
    let stream =
        stream!("codex-tool").replace("DONE: wrote proof.txt", "usage limit reached|1794768000");
    assert_eq!(read(codex::CLI, stream.as_bytes(), &ended(0)).2.status, AgentRunStatus::Done);
}

#[test]
fn lines_that_are_not_json_are_counted_and_passed_over() {
    let stream = format!("hello\n\n[1]\n{}", stream!("gemini-tool"));
    let (_, garbage, end) = read(gemini::CLI, stream.as_bytes(), &ended(0));
    assert_eq!((garbage, end.status), (2, AgentRunStatus::Done));
}

fn job() -> BackendJob {
    BackendJob {
        form: None,
        prompt: "-do it".to_owned(),
        system: "Be \"brief\".\nAlways.".to_owned(),
        dir: Utf8PathBuf::from("/project"),
        environment: vec![("HOME".to_owned(), "/home/user".to_owned())],
        model: Some("m1".to_owned()),
        session: Some("s1".to_owned()),
        schema: Some(json!({"type": "object"})),
        freedom: AgentFreedom::Workspace,
        told: BackendRestrictions {
            denied: vec!["bash(rm:*)".to_owned()],
            tools: Some(vec!["read".to_owned()]),
            effects: EffectSet::ALL,
        },
        max_cost_usd: Some(0.5),
        max_iterations: Some(7),
        mcp_servers: Some(json!({"rep": {"command": "rep", "args": ["mcp"], "env": {"A": "b"}}})),
        ignore_project_rules: false,
        idle: Duration::from_secs(60),
        absolute: Duration::from_secs(600),
        usage: UsageLimits::default(),
        cancel: CancellationToken::new(),
    }
}

fn plain(freedom: AgentFreedom) -> BackendJob {
    let none =
        BackendJob { system: String::new(), model: None, session: None, schema: None, ..job() };
    BackendJob {
        freedom,
        told: BackendRestrictions::default(),
        max_cost_usd: None,
        max_iterations: None,
        mcp_servers: None,
        ..none
    }
}

fn asked(cli: CliDefinition, job: &BackendJob) -> String {
    let CliInvocation { args, environment, stdin, files, request: _ } =
        (cli.ask)(job, &["--extra".to_owned()], Utf8Path::new("/private"));
    let mut text = format!("{} {args:?}\n", cli.program);
    for (name, value) in environment {
        writeln!(text, "{name}={value}").expect("a String takes all");
    }
    for (path, content) in files {
        writeln!(text, "{path}: {content:?}").expect("a String takes all");
    }
    if let ProcessInput::Text(stdin) = stdin {
        writeln!(text, "stdin: {stdin:?}").expect("a String takes all");
    }
    text
}

#[test]
fn command_lines_say_all_that_a_job_says() {
    for cli in [claude::CLI, codex::CLI, opencode::CLI, gemini::CLI] {
        insta::assert_snapshot!(format!("asked_{}", cli.name), asked(cli, &job()));
    }
}

#[test]
fn freedom_is_said_in_the_words_of_each() {
    let mut text = String::new();
    for cli in [claude::CLI, codex::CLI, opencode::CLI, gemini::CLI] {
        for freedom in [AgentFreedom::ReadOnly, AgentFreedom::Workspace, AgentFreedom::Full] {
            text.push_str(&asked(cli, &plain(freedom)));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn claude_gets_no_servers_where_it_may_only_read_and_never_reads_where_keys_lie() {
    let line = asked(claude::CLI, &BackendJob { freedom: AgentFreedom::ReadOnly, ..job() });
    assert!(!line.contains("mcp__") && !line.contains("--mcp-config"), "{line}");
    for freedom in [AgentFreedom::ReadOnly, AgentFreedom::Workspace] {
        let line = asked(claude::CLI, &BackendJob { freedom, ..job() });
        let denied = line.split("--disallowedTools").nth(1).unwrap_or_default();
        for place in ["Read(//proc/**)", "Read(//**/.git/config)", "Bash(rm:*)"] {
            assert!(denied.contains(place), "{place}: {line}");
        }
    }
}

#[test]
fn long_words_of_the_operator_do_not_go_on_the_command_line() {
    let long = BackendJob { system: "x".repeat(200_000), ..job() };
    for cli in [claude::CLI, codex::CLI, opencode::CLI, gemini::CLI] {
        let asked = (cli.ask)(&long, &[], Utf8Path::new("/private"));
        assert!(asked.args.iter().all(|arg| arg.len() < 10_000), "{}", cli.name);
        assert!(asked.environment.iter().all(|(_, value)| value.len() < 10_000), "{}", cli.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_cut_or_changed_stream_makes_a_parser_panic(
        which in 0..STREAMS.len(),
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        reader in 0_usize..4,
    ) {
        let mut bytes = STREAMS[which].1.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        // Every parser reads every stream: a wrong program on PATH is one way to be broken.
        let cli = [claude::CLI, codex::CLI, opencode::CLI, gemini::CLI][reader];
        let (_, _, end) = read(cli, &bytes, &ended(0));
        prop_assert_eq!(end.error.is_none(), end.status == AgentRunStatus::Done);
    }

    #[test]
    fn values_of_other_types_do_not_make_a_parser_panic(
        which in 0..STREAMS.len(),
        line in any::<prop::sample::Index>(),
        key in any::<prop::sample::Index>(),
        value in prop::sample::select(vec!["null", "1e400", "-1", "[]", "[[]]", "{}", "\"\"", "true", "18446744073709551615", "9e99"]),
    ) {
        let (cli, stream) = STREAMS[which];
        let lines: Vec<&str> = stream.lines().collect();
        let line = lines[line.index(lines.len())];
        let places: Vec<usize> = line.match_indices("\":").map(|(at, _)| at + 2).collect();
        let at = places[key.index(places.len())];
        let end = line[at..].find([',', '}', ']']).map_or(line.len(), |end| at + end);
        let changed = format!("{}{value}{}", &line[..at], &line[end..]);
        read(cli, format!("{changed}\n{changed}").as_bytes(), &ended(0));
    }
}

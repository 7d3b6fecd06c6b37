//! The daemon against browsers that were sent by somebody else, clients that are slow, and requests that are not what they seem.

mod attacks;
pub(crate) mod daemon;

use std::time::Duration;

use repertoire_serve::http::ClientRules;
use repertoire_serve::http::token::{CODE_LIFE, SESSION_LIFE};
use repertoire_serve::limits::HttpLimits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use attacks::ATTACKS;
use daemon::{SECRET_SKILL, Served, read_all};

/// What a client of ours sends: refusing everything would be no guard.
const WELCOME: &[(&str, u16, &str)] = &[
    ("the page", 200, "GET / HTTP/1.1\nHost: {at}\n\n"),
    ("the page by its other name", 200, "GET / HTTP/1.1\nHost: localhost:{port}\n\n"),
    (
        "the page, typed by a person",
        200,
        "GET / HTTP/1.1\nHost: {at}\nSec-Fetch-Site: none\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\n\n",
    ),
    (
        "the page by a link elsewhere",
        200,
        "GET / HTTP/1.1\nHost: {at}\nReferer: https://example.com/\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\n\n",
    ),
    ("its head", 200, "HEAD / HTTP/1.1\nHost: {at}\n\n"),
    ("the health", 200, "GET /healthz HTTP/1.1\nHost: {at}\n\n"),
    ("skills", 200, "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n"),
    (
        "skills by the other name",
        200,
        "GET /api/v1/skills HTTP/1.1\nHost: LocalHost:{port}\nAuthorization: bearer {token}\n\n",
    ),
    (
        "skills for the page",
        200,
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nSec-Fetch-Site: same-origin\nSec-Fetch-Mode: cors\nReferer: http://{at}/\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "skills by a whole address",
        200,
        "GET http://{at}/api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "skills in an old version",
        200,
        "GET /api/v1/skills HTTP/1.0\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "the document",
        200,
        "GET /api/v1/openapi.json HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a link for the page",
        200,
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nOrigin: http://{at}\nSec-Fetch-Site: same-origin\nContent-Type: application/json\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "a link for a program",
        200,
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: Application/JSON; charset=utf-8\nAuthorization: Bearer {token}\nContent-Length: 2\n\n{}",
    ),
    (
        "a body in chunks",
        200,
        "POST /api/v1/links HTTP/1.1\nHost: {at}\nContent-Type: application/json\nTransfer-Encoding: chunked\nAuthorization: Bearer {token}\n\n2\n{}\n0\n\n",
    ),
    (
        "a client that offers another protocol",
        200,
        "GET /api/v1/skills HTTP/1.1\nHost: {at}\nUpgrade: h2c\nAuthorization: Bearer {token}\n\n",
    ),
    (
        "a session of MCP",
        200,
        "POST /mcp HTTP/1.1\nHost: {at}\nContent-Type: application/json\nAccept: application/json, text/event-stream\nAuthorization: Bearer {token}\nContent-Length: 146\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
    ),
    (
        "what is not there",
        404,
        "GET /api/v1/nothing HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n",
    ),
];

#[tokio::test]
async fn every_attack_is_refused_and_learns_nothing() {
    assert!(ATTACKS.len() >= 40);
    let served = Served::start().await;
    let mut through = Vec::new();
    for (name, request) in ATTACKS {
        let answer = served.ask(request).await;
        let refused = (400..500).contains(&answer.status);
        let secrets = [served.token.as_str(), SECRET_SKILL, served.dir.as_str(), "root:"];
        let tells = secrets.iter().any(|secret| answer.whole.contains(secret));
        let opens = answer.whole.to_ascii_lowercase().contains("access-control-allow");
        if !refused || tells || opens {
            through.push(format!("{name}: {}", answer.whole));
        }
    }
    assert_eq!(through, Vec::<String>::new());
}

#[tokio::test]
async fn what_our_clients_send_gets_through() {
    let served = Served::start().await;
    for (name, status, request) in WELCOME {
        let answer = served.ask(request).await;
        assert_eq!(answer.status, *status, "{name}: {}", answer.whole);
        assert!(answer.header("x-request-id").is_some(), "{name}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{name}");
        assert!(!answer.whole.to_ascii_lowercase().contains("access-control"), "{name}");
        assert!(!answer.whole.to_ascii_lowercase().contains("set-cookie"), "{name}");
    }
}

#[tokio::test]
async fn a_daemon_on_the_other_loopback_answers_to_that_one() {
    let served = Served::start_at("::1".parse().unwrap(), ClientRules::default()).await;
    let ask = |host: &str| {
        let request = format!(
            "GET /api/v1/skills HTTP/1.1\nHost: {host}:{{port}}\nAuthorization: Bearer {{token}}\n\n"
        );
        let served = &served;
        async move { served.ask(&request).await.status }
    };
    assert_eq!(ask("[::1]").await, 200);
    assert_eq!(ask("[0:0::1]").await, 200);
    assert_eq!(ask("localhost").await, 200);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "[::]", "[::2]", "::1"] {
        assert_eq!(ask(host).await, 421, "{host}");
    }
}

#[tokio::test]
async fn a_name_that_was_allowed_is_answered_and_only_that() {
    let names = vec!["rep.example.com".parse().unwrap()];
    let served = Served::start_with(ClientRules { names, ..ClientRules::default() }).await;
    let ask = |host: &str, origin: &str| {
        let request = format!(
            "GET /api/v1/skills HTTP/1.1\nHost: {host}\nOrigin: {origin}\nAuthorization: Bearer {{token}}\n\n"
        );
        let served = &served;
        async move { served.ask(&request).await.status }
    };
    assert_eq!(ask("rep.example.com", "https://rep.example.com").await, 200);
    assert_eq!(ask("rep.example.com:{port}", "http://rep.example.com:{port}").await, 200);
    assert_eq!(ask("{at}", "http://{at}").await, 200);
    assert_eq!(ask("rep.example.com", "https://evil.com").await, 403);
    assert_eq!(ask("rep.example.com", "http://{at}").await, 403);
    assert_eq!(ask("x.rep.example.com", "https://x.rep.example.com").await, 421);
}

#[tokio::test]
async fn a_name_that_was_allowed_reaches_mcp_as_well() {
    let names = vec!["rep.example.com".parse().unwrap()];
    let served = Served::start_with(ClientRules { names, ..ClientRules::default() }).await;
    let (.., request) = WELCOME.iter().find(|(name, ..)| *name == "a session of MCP").unwrap();
    for (host, status) in [("rep.example.com", 200), ("{at}", 200), ("evil.com", 421)] {
        let request = request.replace("Host: {at}", &format!("Host: {host}"));
        let answer = served.ask(&request).await;
        assert_eq!(answer.status, status, "{host}: {}", answer.whole);
    }
}

#[tokio::test]
async fn a_refusal_says_what_and_has_a_number_that_is_ours() {
    let served = Served::start().await;
    let request = "GET /api/v1/skills HTTP/1.1\nHost: {at}\nX-Request-Id: <script>\n\n";
    let (first, second) = (served.ask(request).await, served.ask(request).await);
    let number = first.header("x-request-id").unwrap();
    assert_ne!(Some(number), second.header("x-request-id"));
    assert!(!first.whole.contains("script"));
    assert_eq!(first.header("content-type"), Some("application/problem+json"));
    assert_eq!(first.header("www-authenticate"), Some("Bearer realm=\"rep serve\""));
    let problem = first.json();
    assert_eq!(problem["status"], 401);
    assert_eq!(problem["request_id"], number);
    assert_eq!(problem["detail"], "a valid token is required");
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let served = Served::start().await;
    let request = "DELETE /api/v1/links HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n";
    let answer = served.ask(request).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert_eq!(answer.json()["status"], 405);
    let answer = served.ask("DELETE / HTTP/1.1\nHost: {at}\n\n").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET,HEAD")));
}

#[tokio::test]
async fn the_page_comes_with_a_policy_that_lets_nothing_else_in() {
    let served = Served::start().await;
    let page = served.ask("GET / HTTP/1.1\nHost: {at}\n\n").await;
    let policy = page.header("content-security-policy").unwrap();
    for rule in
        ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]
    {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("cross-origin-opener-policy"), Some("same-origin"));
    assert_eq!(page.header("cross-origin-resource-policy"), Some("same-origin"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let skills = "GET /api/v1/skills HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n";
    assert_eq!(served.ask(skills).await.header("cache-control"), Some("no-store"));
}

/// A code, as the page redeems it.
async fn redeem(served: &Served, code: &str) -> daemon::Answer {
    let body = serde_json::json!({ "code": code }).to_string();
    let length = body.len();
    let request = format!(
        "POST /api/v1/session HTTP/1.1\nHost: {{at}}\nOrigin: http://{{at}}\nContent-Type: application/json\nContent-Length: {length}\n\n{body}"
    );
    served.ask(&request).await
}

async fn skills_with(served: &Served, token: &str) -> u16 {
    let request =
        format!("GET /api/v1/skills HTTP/1.1\nHost: {{at}}\nAuthorization: Bearer {token}\n\n");
    served.ask(&request).await.status
}

#[tokio::test]
async fn a_link_opens_one_page_which_expires() {
    let served = Served::start().await;
    let code = served.keys.issue_code(served.now_ms()).unwrap();
    assert_eq!(skills_with(&served, &code).await, 401);
    let session = redeem(&served, &code).await;
    assert_eq!(session.status, 200);
    let session = session.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(skills_with(&served, &session).await, 200);
    assert_eq!(redeem(&served, &code).await.status, 401);
    served.pass(SESSION_LIFE);
    assert_eq!(skills_with(&served, &session).await, 401);
    let late = served.keys.issue_code(served.now_ms()).unwrap();
    served.pass(CODE_LIFE);
    assert_eq!(redeem(&served, &late).await.status, 401);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let served = Served::start().await;
    let select = async |task: &str| {
        let body = serde_json::json!({ "task": task }).to_string();
        let length = body.len();
        let request = format!(
            "POST /api/v1/select HTTP/1.1\nHost: {{at}}\nAuthorization: Bearer {{token}}\nContent-Type: application/json\nContent-Length: {length}\n\n{body}"
        );
        served.ask(&request).await
    };
    let answer = select(&"x".repeat(HttpLimits::default().body_bytes_max)).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["detail"], "a body has at most 1048576 bytes");
    assert_eq!(select("count the quarter").await.status, 200);
    // Who has shown no token yet may send a code, and no more.
    let answer = redeem(&served, &"x".repeat(2_000)).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["detail"], "a body has at most 1024 bytes");
    assert_eq!(redeem(&served, &"x".repeat(900)).await.status, 401);
}

#[tokio::test]
async fn a_body_is_not_waited_for_where_none_is_read() {
    let served = Served::start().await;
    for headers in ["Content-Length: 1048576", "Content-Length: 1", "Transfer-Encoding: chunked"] {
        let request = format!(
            "POST /healthz HTTP/1.1\nHost: {{at}}\nContent-Type: application/json\n{headers}\n\n1\n{{\n"
        );
        let answer = served.ask(&request).await;
        assert_eq!(answer.status, 413, "{headers}");
        assert_eq!(answer.json()["detail"], "a request to this address has no body");
    }
    assert_eq!(served.ask("GET /healthz HTTP/1.1\nHost: {at}\n\n").await.status, 200);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let served = Served::start().await;
    let long = "x".repeat(HttpLimits::default().head_bytes_max);
    let answer = served.ask(&format!("GET / HTTP/1.1\nHost: {{at}}\nX-Long: {long}\n\n")).await;
    assert_eq!(answer.status, 431);
    let many: String = (0..200).map(|at| format!("X-{at}: y\n")).collect();
    let answer = served.ask(&format!("GET / HTTP/1.1\nHost: {{at}}\n{many}\n")).await;
    assert_eq!(answer.status, 431);
}

/// Limits that a test can wait for.
fn hasty() -> ClientRules {
    let short = Duration::from_millis(300);
    let limits = HttpLimits {
        head_timeout: short,
        body_timeout: short,
        write_timeout: short,
        stop_timeout: short,
        ..HttpLimits::default()
    };
    ClientRules { limits, ..ClientRules::default() }
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_request_is_let_go() {
    let served = Served::start_with(hasty()).await;
    for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: "] {
        let mut stream = served.connect().await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "), "{begun:?}");
    }
    let slow = "POST /api/v1/session HTTP/1.1\nHost: {at}\nContent-Type: application/json\nContent-Length: 100\n\n{";
    assert_eq!(served.ask(slow).await.status, 408);
    assert_eq!(served.ask("GET / HTTP/1.1\nHost: {at}\n\n").await.status, 200);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_let_go() {
    let served = Served::start_with(hasty()).await;
    let mut stream = served.connect().await;
    let one =
        "GET /api/v1/openapi.json HTTP/1.1\r\nHost: {at}\r\nAuthorization: Bearer {token}\r\n\r\n";
    let one = one.replace("{at}", &served.address.to_string()).replace("{token}", &served.token);
    // Many requests and no reading: what does not fit into the buffers has to wait, and is given up.
    let gone = async {
        while stream.write_all(one.as_bytes()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the connection is closed");
}

/// A request for events, which stays open.
const EVENTS: &str = "GET /api/v1/events HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n";

/// The start of the next answer.
async fn status_of(stream: &mut tokio::net::TcpStream) -> String {
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    String::from_utf8_lossy(&first).into_owned()
}

#[tokio::test]
async fn sockets_without_a_token_lock_no_client_out_that_has_one() {
    let limits = HttpLimits { unauthenticated_connections_max: 8, ..HttpLimits::default() };
    let served = Served::start_with(ClientRules { limits, ..ClientRules::default() }).await;
    let mut listening = served.connect().await;
    listening.write_all(&served.fill(EVENTS)).await.unwrap();
    assert_eq!(status_of(&mut listening).await, "HTTP/1.1 200");
    let mut kept = Vec::new();
    for at in 0..100 {
        let mut stream = served.connect().await;
        if at % 2 == 0 {
            // Those that were ended meanwhile cannot be written to.
            let _ = stream.write_all(&served.fill("GET / HTTP/1.1\nHost: {at}\nX-Part:")).await;
        }
        kept.push(stream);
        if at % 10 == 0 {
            let status =
                "GET /api/v1/status HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n";
            assert_eq!(served.ask(status).await.status, 200);
            assert_eq!(served.ask("GET / HTTP/1.1\nHost: {at}\n\n").await.status, 200);
        }
    }
    let ended = read_all(&mut kept[1]).await;
    assert!(ended.is_empty(), "the oldest made room");
    // The one that shows a token on a connection that is open already is heard, too.
    let late = kept.last_mut().unwrap();
    late.write_all(&served.fill(EVENTS)).await.unwrap();
    assert_eq!(status_of(late).await, "HTTP/1.1 200");
}

#[tokio::test]
async fn connections_with_a_token_beyond_the_limit_are_told_so() {
    let limits = HttpLimits { connections_max: 1, ..HttpLimits::default() };
    let served = Served::start_with(ClientRules { limits, ..ClientRules::default() }).await;
    let mut listening = served.connect().await;
    listening.write_all(&served.fill(EVENTS)).await.unwrap();
    assert_eq!(status_of(&mut listening).await, "HTTP/1.1 200");
    let status = "GET /api/v1/status HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n";
    let answer = served.ask(status).await;
    assert_eq!(answer.status, 503, "{}", answer.whole);
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(answer.json()["detail"], "there are too many connections now");
    drop(listening);
    let again = async {
        while served.ask(status).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("who left makes room");
}

#[tokio::test]
async fn a_body_of_10_gb_is_refused_before_it_is_read() {
    let served = Served::start().await;
    let begun = std::time::Instant::now();
    let huge = "POST /api/v1/select HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\
        Content-Type: application/json\nContent-Length: 10737418240\n\n{";
    let answer = served.ask(huge).await;
    assert_eq!(answer.status, 413, "{}", answer.whole);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stream_that_is_open_does_not_keep_the_daemon() {
    let mut served = Served::start_with(hasty()).await;
    let (name, _, request) = WELCOME.iter().find(|(name, ..)| *name == "a session of MCP").unwrap();
    let session = served.ask(request).await;
    let session = session.header("mcp-session-id").expect(name).to_owned();
    let listening = format!(
        "GET /mcp HTTP/1.1\nHost: {{at}}\nAccept: text/event-stream\nMcp-Session-Id: {session}\nAuthorization: Bearer {{token}}\n\n"
    );
    let mut stream = served.connect().await;
    stream.write_all(&served.fill(&listening)).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    served.shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), served.task.take().unwrap()).await;
    ended.expect("it ends").unwrap().unwrap();
}

/// What a folder holds, by name and size; what the database keeps beside itself comes and goes.
fn traces(dir: &camino::Utf8Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            match metadata.is_dir() {
                true => folders.push(entry.path().to_owned()),
                false if entry.path().as_str().contains(".db-") => {}
                false => found.push((entry.path().to_string(), metadata.len())),
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn no_get_leaves_a_trace() {
    let served = Served::start().await;
    let document =
        "GET /api/v1/openapi.json HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n";
    let document = served.ask(document).await.json();
    let paths = document["paths"].as_object().unwrap();
    let asked = paths.iter().filter(|(_, operations)| operations.get("get").is_some());
    // The database is there as soon as anybody asks about runs; `rep serve` does when it starts.
    let runs = "GET /api/v1/runs HTTP/1.1\nHost: {at}\nAuthorization: Bearer {token}\n\n";
    assert_eq!(served.ask(runs).await.status, 200);
    let before = traces(&served.dir);
    let mut count = 0;
    for (path, _) in asked.filter(|(path, _)| !path.contains("events")) {
        let path: String = path
            .split('/')
            .map(|part| {
                if part.starts_with('{') { "/x" } else { "/" }.to_owned()
                    + part.trim_matches(|c| matches!(c, '{' | '}'))
            })
            .collect();
        let path = path.replacen('/', "", 1);
        let request =
            format!("GET {path} HTTP/1.1\nHost: {{at}}\nAuthorization: Bearer {{token}}\n\n");
        let status = served.ask(&request).await.status;
        assert!((200..500).contains(&status), "{path}: {status}");
        count += 1;
    }
    assert!(count >= 2, "{document}");
    assert_eq!(traces(&served.dir), before);
}

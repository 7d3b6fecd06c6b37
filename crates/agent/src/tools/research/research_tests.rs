use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::tools::testing::{Bench, call};

/// Answers requests by their path, until the test ends.
async fn server(
    answers: &'static [(&'static str, &'static str)],
) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or("").to_owned();
            let answer = answers.iter().find(|(known, _)| path.starts_with(known));
            let answer =
                answer.map_or("HTTP/1.1 404 Not Found\r\n\r\nnothing", |(_, answer)| answer);
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (format!("http://127.0.0.1:{port}"), task)
}

fn private() -> ResearchTool {
    ResearchTool::new(ResearchSettings {
        reach: ResearchReach::Private,
        ..ResearchSettings::default()
    })
}

#[tokio::test]
async fn a_page_is_fetched_as_text() {
    let bench = Bench::new();
    let (url, task) = server(&[
        ("/html", "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<p>Hello &amp; bye</p>"),
        ("/image", "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\n\r\nx"),
        ("/again", "HTTP/1.1 302 Found\r\nlocation: /html\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        ("/loop", "HTTP/1.1 302 Found\r\nlocation: /loop\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        ("/away", "HTTP/1.1 302 Found\r\nlocation: http://example.com/x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        ("/file", "HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
    ])
    .await;
    let tool = private();
    let text = bench.ok(&tool, json!({"url": format!("{url}/html")})).await;
    assert_eq!(text, format!("{url}/html\n\nHello & bye"));
    let text = bench.ok(&tool, json!({"url": format!("{url}/again")})).await;
    assert!(text.ends_with("Hello & bye"), "{text}");
    let text = bench.ok(&tool, json!({"url": format!("{url}/away")})).await;
    assert!(text.contains("redirects to another place: http://example.com/x"), "{text}");
    for (path, expected) in [
        ("/image", "cannot be shown as text"),
        ("/loop", "more than 5 redirects"),
        ("/file", "only http and https"),
        ("/none", "answered 404"),
    ] {
        let text = bench.fails(&tool, json!({"url": format!("{url}{path}")})).await;
        assert!(text.contains(expected), "{text}");
    }
    task.abort();
}

#[tokio::test]
async fn private_addresses_are_refused_before_anything_is_sent() {
    let bench = Bench::new();
    let tool = ResearchTool::new(ResearchSettings::default());
    for url in [
        "http://127.0.0.1:1/",
        "http://localhost:1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
    ] {
        let text = bench.fails(&tool, json!({"url": url})).await;
        assert!(
            text.contains("not a public address") || text.contains("cannot be found"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn other_schemes_and_passwords_are_refused() {
    let bench = Bench::new();
    let long = format!("http://example.com/{}", "x".repeat(3000));
    for url in [
        "file:///etc/passwd",
        "ftp://example.com/",
        "nonsense",
        "http://a:b@example.com/",
        "data:,x",
        &long,
    ] {
        bench.fails(&private(), json!({"url": url})).await;
    }
    bench.fails(&private(), json!({})).await;
    bench.fails(&private(), json!({"url": "http://x/", "query": "y"})).await;
}

#[tokio::test]
async fn a_large_page_is_cut_and_says_so() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 1024]).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(head.as_bytes()).await;
        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
    });
    let text = bench.ok(&private(), json!({"url": url})).await;
    assert!(text.ends_with("[the page is longer than 5 MB; this is its start]"));
    assert!(text.len() < 40_000);
    task.abort();
}

#[tokio::test]
async fn a_search_needs_a_service_and_shows_its_results() {
    let bench = Bench::new();
    let text = bench.fails(&private(), json!({"query": "rust"})).await;
    assert!(text.contains("not set up"), "{text}");
    let (url, task) = server(&[
        (
            "/search?q=a%20%26%20b",
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\
             {\"results\": [{\"title\": \"T\\n1\", \"url\": \"http://example.com\", \"content\": \"C\"}, {\"url\": \"u\"}]}",
        ),
        ("/search?q=wrong", "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n<html>"),
    ])
    .await;
    let settings = ResearchSettings {
        search_url: Some(format!("{url}/search?q={{query}}&format=json")),
        ..ResearchSettings::default()
    };
    let tool = ResearchTool::new(settings);
    let text = bench.ok(&tool, json!({"query": "a & b"})).await;
    assert!(text.starts_with("- T 1\n  http://example.com\n  C\n- "), "{text}");
    let text = bench.fails(&tool, json!({"query": "wrong"})).await;
    assert!(text.contains("JSON of SearXNG"), "{text}");
    task.abort();
}

#[tokio::test]
async fn a_stopped_run_waits_for_nobody() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let run = bench.run();
    run.cancel.cancel();
    let output = call(&private(), &run, json!({"url": url})).await;
    assert!(output.is_error, "{}", output.text);
}

#[test]
fn the_subject_tells_pages_from_searches() {
    let tool = private();
    assert_eq!(tool.subject(&json!({"url": "https://a.b/c"})), "https://a.b/c");
    assert_eq!(tool.subject(&json!({"query": "x y"})), "search: x y");
}

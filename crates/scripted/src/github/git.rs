//! Serves a bare repository on disk with git's `http-backend`, so that pushes over HTTP can be
//! tested.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

use tokio::io::AsyncWriteExt;

use super::reply::GitHubReply;
use crate::http::RawRequest;

/// The commit of a branch of a bare repository.
pub(super) fn branch_tip(dir: &str, branch: &str) -> Option<String> {
    let name = format!("refs/heads/{branch}");
    let ran = Command::new("git").args(["--git-dir", dir, "rev-parse", "--verify", &name]).output();
    let ran = ran.ok().filter(|ran| ran.status.success())?;
    Some(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

pub(super) fn delete_branch(dir: &str, branch: &str) {
    let name = format!("refs/heads/{branch}");
    let _ = Command::new("git").args(["--git-dir", dir, "update-ref", "-d", &name]).output();
}

/// Returns the path within the repository if a call comes from git.
pub(super) fn path_within<'a>(path: &'a str, owner: &str, name: &str) -> Option<&'a str> {
    path.strip_prefix(&format!("/{owner}/{name}.git"))
}

/// Returns true if git is pushing.
pub(super) fn is_write(path: &str, query: &str) -> bool {
    path.ends_with("/git-receive-pack") || query.contains("service=git-receive-pack")
}

/// Answers a call with `git http-backend`.
pub(super) async fn run_http_backend(
    dir: &str,
    path: &str,
    query: &str,
    request: &RawRequest,
) -> io::Result<(GitHubReply, Vec<u8>)> {
    let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
    let mut child = tokio::process::Command::new("git")
        .args(["-c", "http.receivepack=true", "http-backend"])
        .env("GIT_PROJECT_ROOT", dir)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", "fake")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or_else(|| io::Error::other("git takes no input"))?;
    let body = request.body.clone();
    let feeding = tokio::spawn(async move { stdin.write_all(&body).await });
    let ended = child.wait_with_output().await?;
    let _ = feeding.await;
    Ok(parse_cgi_response(&ended.stdout))
}

/// Parses a CGI response: headers, an empty line, a body.
fn parse_cgi_response(output: &[u8]) -> (GitHubReply, Vec<u8>) {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let mut headers: BTreeMap<String, String> = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let status = headers.remove("status");
    let status = status.and_then(|status| status.split(' ').next()?.parse().ok());
    let body = output.get(end + 4..).unwrap_or_default().to_vec();
    let headers = headers.into_iter().collect();
    (GitHubReply { status: status.unwrap_or(200), headers, body: String::new() }, body)
}

//! A client for GitHub's REST API: one repository, and only the calls that are needed.
//!
//! The token is sent only to the configured address, is never printed, and is redacted in every
//! message. A failed call is retried where that can help ([`retry`]); before a call that must not
//! be made twice is repeated, the client checks whether it took effect. Names that could lead to
//! another URL are refused before anything is sent ([`name`]).

use repertoire_model::ApiSecret;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy as Redirects;

mod branches;
mod checks;
pub mod error;
mod issues;
pub mod limits;
pub mod name;
mod page;
mod pulls;
pub mod retry;
pub mod types;
mod wire;

pub use self::error::ClientError;
pub use self::page::PagedList;
pub use self::pulls::{MergeMethod, NewPull};
use self::retry::CallRetryPolicy;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The base URL of the API, in Actions `GITHUB_API_URL`.
    pub api_url: String,
    /// The token; without one only public data can be read.
    pub token: Option<ApiSecret>,
    /// The owner of the repository.
    pub owner: String,
    /// The name of the repository.
    pub repository: String,
    /// The timeout of one call.
    pub timeout_ms: u64,
    /// The retry policy.
    pub policy: CallRetryPolicy,
    /// Returns milliseconds since 1970.
    pub clock: fn() -> u64,
    /// Returns a number between 0 and 1, the jitter of retry delays.
    pub random: fn() -> f64,
}

impl ClientSettings {
    /// Creates the default settings, with the clock of this machine.
    pub fn new(api_url: &str, token: Option<ApiSecret>, owner: &str, repository: &str) -> Self {
        ClientSettings {
            api_url: api_url.to_owned(),
            token,
            owner: owner.to_owned(),
            repository: repository.to_owned(),
            timeout_ms: 30_000,
            policy: CallRetryPolicy::default(),
            clock: wall_clock_ms,
            random: || 0.5,
        }
    }
}

fn wall_clock_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// A client for one repository. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GitHubClient {
    http: reqwest::Client,
    base: Url,
    headers: HeaderMap,
    token: Option<ApiSecret>,
    owner: String,
    repository: String,
    timeout_ms: u64,
    policy: CallRetryPolicy,
    clock: fn() -> u64,
    random: fn() -> f64,
}

impl GitHubClient {
    /// Creates a client; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// If the URL is neither `https://` nor local, or a name is not valid on GitHub.
    pub fn new(settings: ClientSettings) -> Result<Self, ClientError> {
        name::login(&settings.owner)?;
        name::repository(&settings.repository)?;
        let base = parse_base_url(&settings.api_url)?;
        let headers = default_headers(settings.token.as_ref())?;
        let http = build_http_client(&base)
            .map_err(|message| ClientError::Network { what: "the network".to_owned(), message })?;
        Ok(GitHubClient {
            http,
            base,
            headers,
            token: settings.token,
            owner: settings.owner,
            repository: settings.repository,
            timeout_ms: settings.timeout_ms,
            policy: settings.policy,
            clock: settings.clock,
            random: settings.random,
        })
    }

    /// The owner of the repository.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The name of the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.repository)
    }

    /// The token, for `git push`.
    pub fn token(&self) -> Option<&ApiSecret> {
        self.token.as_ref()
    }

    /// Returns milliseconds since 1970, by the client's clock.
    pub fn now_ms(&self) -> u64 {
        (self.clock)()
    }

    /// Returns a URL of the API.
    fn api_url(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }

    /// Returns an API URL of the repository.
    fn repository_url(&self, parts: &[&str]) -> Url {
        let mut all = vec!["repos", self.owner.as_str(), self.repository.as_str()];
        all.extend(parts);
        self.api_url(&all)
    }

    /// Returns true if a URL belongs to the API.
    fn is_api_url(&self, url: &Url) -> bool {
        let beneath = url.path().starts_with(self.base.path().trim_end_matches('/'));
        url.origin() == self.base.origin() && beneath && url.username().is_empty()
    }
}

fn parse_base_url(api_url: &str) -> Result<Url, ClientError> {
    let shown = api_url.rsplit_once('@').map_or(api_url, |(_, rest)| rest);
    let refused = |why| ClientError::BadAddress { url: shown.to_owned(), why };
    let mut url = Url::parse(api_url.trim()).map_err(|_| refused("is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("has a name or a password in it"));
    }
    match url.scheme() {
        "https" => {}
        "http" if is_local(&url) => {}
        _ => return Err(refused("does not begin with https://, and is not on this machine")),
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn default_headers(token: Option<&ApiSecret>) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert("x-github-api-version", HeaderValue::from_static("2022-11-28"));
    let Some(token) = token.map(|token| token.reveal().trim()).filter(|token| !token.is_empty())
    else {
        return Ok(headers);
    };
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|_| ClientError::Unauthorised {
        what: "the token".to_owned(),
        message: "it has characters that cannot be sent".to_owned(),
    })?;
    value.set_sensitive(true);
    headers.insert("authorization", value);
    Ok(headers)
}

fn build_http_client(base: &Url) -> Result<reqwest::Client, String> {
    // This fails only if a provider is already installed, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .connect_timeout(std::time::Duration::from_secs(10))
        .redirect(Redirects::none())
        .tcp_nodelay(true)
        .user_agent(concat!("repertoire/", env!("CARGO_PKG_VERSION")));
    // Loading the system's certificates is slow, and plain HTTP on this machine does not need them.
    let builder = match base.scheme() {
        "http" => builder.tls_certs_only([]).no_proxy(),
        _ => builder,
    };
    builder.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(api_url: &str) -> Result<GitHubClient, ClientError> {
        let token = Some(ApiSecret::new("ghs_verysecret"));
        GitHubClient::new(ClientSettings::new(api_url, token, "octo", "repo"))
    }

    #[test]
    fn a_token_goes_over_https_or_stays_on_this_machine() {
        for url in ["http://127.0.0.1:9", "http://localhost:9/api/v3", "http://[::1]:9"] {
            assert!(client(url).is_ok(), "{url}");
        }
        for url in ["http://github.example", "ftp://x", "x", "", "http://127.0.0.1.evil.example"] {
            assert!(client(url).is_err(), "{url}");
        }
        let error = client("http://name:hidden@127.0.0.1:9").unwrap_err().to_string();
        assert!(!error.contains("hidden"), "{error}");
    }

    #[test]
    fn addresses_keep_the_path_of_an_enterprise() {
        let client = client("http://127.0.0.1:9/api/v3/").unwrap();
        let url = client.repository_url(&["branches", "bot/issue #3?"]);
        assert_eq!(
            url.as_str(),
            "http://127.0.0.1:9/api/v3/repos/octo/repo/branches/bot%2Fissue%20%233%3F"
        );
        for (url, ours) in [
            ("http://127.0.0.1:9/api/v3/repositories/1?page=2", true),
            ("http://127.0.0.1:9/other", false),
            ("http://127.0.0.1:8/api/v3/x", false),
            ("https://evil.example/api/v3/x", false),
            ("http://a@127.0.0.1:9/api/v3/x", false),
        ] {
            assert_eq!(client.is_api_url(&Url::parse(url).unwrap()), ours, "{url}");
        }
    }

    #[test]
    fn nothing_of_a_client_prints_its_token() {
        let client = client("http://127.0.0.1:9").unwrap();
        assert!(!format!("{client:?}").contains("verysecret"));
    }

    #[test]
    fn names_that_lead_elsewhere_make_no_client() {
        for (owner, repository) in [("../user", "repo"), ("octo", ".."), ("octo", "a/b"), ("", "r")]
        {
            let settings = ClientSettings::new("http://127.0.0.1:9", None, owner, repository);
            assert!(matches!(GitHubClient::new(settings), Err(ClientError::BadName { .. })));
        }
    }
}

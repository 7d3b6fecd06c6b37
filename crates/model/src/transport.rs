//! The HTTP clients, created on first use.
//!
//! Loading the system's certificates dominates the start of a call, so plain `http://` URLs, nearly
//! always servers on this machine, get a client without them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

/// The HTTP clients for all URLs. Clones share connections.
#[derive(Clone, Debug)]
pub(crate) struct HttpTransport {
    connect_ms: u64,
    clients: Arc<HttpClients>,
}

#[derive(Debug, Default)]
struct HttpClients {
    /// For this machine: without certificates or proxy.
    local: OnceLock<Result<Client, String>>,
    /// For other `http://` URLs: without certificates.
    plain: OnceLock<Result<Client, String>>,
    /// For `https://` URLs.
    secure: OnceLock<Result<Client, String>>,
}

impl HttpTransport {
    pub(crate) fn new(connect_ms: u64) -> Self {
        HttpTransport { connect_ms, clients: Arc::default() }
    }

    /// Returns the client for a URL.
    ///
    /// # Errors
    ///
    /// Returns the reason why it could not be created: the system's certificates cannot be read.
    pub(crate) fn client(&self, url: &Url) -> Result<&Client, String> {
        let made = match (url.scheme(), is_local(url)) {
            ("https", _) => self.clients.secure.get_or_init(|| build_client(self.builder())),
            (_, true) => self
                .clients
                .local
                .get_or_init(|| build_client(self.builder().tls_certs_only([]).no_proxy())),
            (_, false) => {
                self.clients.plain.get_or_init(|| build_client(self.builder().tls_certs_only([])))
            }
        };
        made.as_ref().map_err(Clone::clone)
    }

    fn builder(&self) -> ClientBuilder {
        // This only fails if a provider is already installed, which is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder()
            .connect_timeout(Duration::from_millis(self.connect_ms))
            .redirect(Policy::none())
            .tcp_nodelay(true)
            .user_agent(concat!("repertoire/", env!("CARGO_PKG_VERSION")))
    }
}

fn build_client(builder: ClientBuilder) -> Result<Client, String> {
    builder.build().map_err(|error| innermost_error(&error))
}

fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// The innermost source of an error: the outer ones only name the layers that passed it on.
pub(crate) fn innermost_error(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

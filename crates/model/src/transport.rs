//! The HTTP clients, made when they are first needed.
//!
//! Reading the system's certificates takes longer than everything else at the start of a call, so a plain `http://`
//! address, which is nearly always a server on this machine, gets a client without any.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};

/// The clients for all addresses. Copies share connections.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    connect_ms: u64,
    clients: Arc<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    /// For this machine: no certificates, and no proxy between.
    local: OnceLock<Result<Client, String>>,
    /// For other `http://` addresses: no certificates.
    plain: OnceLock<Result<Client, String>>,
    /// For `https://`.
    secure: OnceLock<Result<Client, String>>,
}

impl Transport {
    pub(crate) fn new(connect_ms: u64) -> Self {
        Transport { connect_ms, clients: Arc::default() }
    }

    /// The client for an address.
    ///
    /// # Errors
    ///
    /// Why it could not be made: the system's certificates cannot be read.
    pub(crate) fn client(&self, url: &Url) -> Result<&Client, String> {
        let made = match (url.scheme(), is_local(url)) {
            ("https", _) => self.clients.secure.get_or_init(|| build(self.builder())),
            (_, true) => self
                .clients
                .local
                .get_or_init(|| build(self.builder().tls_certs_only([]).no_proxy())),
            (_, false) => {
                self.clients.plain.get_or_init(|| build(self.builder().tls_certs_only([])))
            }
        };
        made.as_ref().map_err(Clone::clone)
    }

    fn builder(&self) -> ClientBuilder {
        // It fails only if a provider is there already, and then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::builder()
            .connect_timeout(Duration::from_millis(self.connect_ms))
            .redirect(Policy::none())
            .tcp_nodelay(true)
            .user_agent(concat!("repertoire/", env!("CARGO_PKG_VERSION")))
    }
}

fn build(builder: ClientBuilder) -> Result<Client, String> {
    builder.build().map_err(|error| deepest(&error))
}

fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// What an error comes from: the outer ones only say which layer passed it on.
pub(crate) fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

//! Models on the network.

use futures_util::stream::BoxStream;

use crate::error::Error;
use crate::name::Service;
use crate::request::Request;
use crate::response::Delta;
use crate::secret::Secret;

/// The pieces of an answer as they come. Dropping it ends the call.
pub type DeltaStream = BoxStream<'static, Result<Delta, Error>>;

/// Something that answers requests.
pub trait Provider: Send + Sync {
    /// Starts a call. The request is read before this returns; what goes wrong later is in the stream, as its
    /// last item.
    fn stream(&self, request: &Request<'_>) -> DeltaStream;
}

/// Where a service is, and how to be let in.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The address that the protocol's paths are added to.
    pub base_url: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
}

/// Where each service is.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// Anthropic.
    pub anthropic: Option<Endpoint>,
    /// OpenAI.
    pub openai: Option<Endpoint>,
    /// Any other server that speaks as OpenAI does.
    pub compat: Option<Endpoint>,
}

impl Endpoints {
    /// The endpoint of a service, if it is set up.
    pub fn get(&self, service: Service) -> Option<&Endpoint> {
        match service {
            Service::Anthropic => self.anthropic.as_ref(),
            Service::OpenAi => self.openai.as_ref(),
            Service::Compat => self.compat.as_ref(),
        }
    }
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect_ms: u64,
    /// For the first byte, and then for each next one.
    pub idle_ms: u64,
    /// For the whole call.
    pub absolute_ms: u64,
}

/// The client for all services.
#[derive(Clone, Debug)]
pub struct Client {
    endpoints: Endpoints,
    timeouts: Timeouts,
}

impl Client {
    /// A client for these services.
    pub fn new(endpoints: Endpoints, timeouts: Timeouts) -> Self {
        Client { endpoints, timeouts }
    }
}

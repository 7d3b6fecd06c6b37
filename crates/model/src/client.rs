//! The HTTP client for model services.

mod call;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};

use self::call::ModelCallRequest;
use crate::endpoint::{ModelEndpoints, without_secrets};
use crate::error::ModelError;
use crate::prices::ModelPrices;
use crate::protocol::{AnswerDelivery, ModelProtocol};
use crate::request::ModelRequest;
use crate::response::ResponseDelta;
use crate::secret::ApiSecret;
use crate::transport::HttpTransport;

/// The deltas of an answer. Dropping the stream ends the call.
pub type DeltaStream = BoxStream<'static, Result<ResponseDelta, ModelError>>;

/// Answers model requests.
pub trait ModelProvider: Send + Sync {
    /// Starts a call. The request is not borrowed after this returns; errors are the last item of
    /// the stream.
    fn stream(&self, request: &ModelRequest<'_>) -> DeltaStream;
}

/// The timeouts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTimeouts {
    /// The timeout for connecting.
    pub connect_ms: u64,
    /// The timeout for the first byte, and between bytes.
    pub idle_ms: u64,
    /// The timeout for the whole call.
    pub absolute_ms: u64,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        CallTimeouts { connect_ms: 10_000, idle_ms: 120_000, absolute_ms: 20 * 60_000 }
    }
}

/// The client for all services. Cheap to create: network resources are set up on the first call.
#[derive(Clone, Debug)]
pub struct ModelClient {
    endpoints: ModelEndpoints,
    timeouts: CallTimeouts,
    /// The model table; the built-in one, loaded on the first call, if absent.
    prices: Option<ModelPrices>,
    delivery: AnswerDelivery,
    clock: fn() -> u64,
    transport: HttpTransport,
}

impl ModelClient {
    /// Creates a client for the given services.
    pub fn new(endpoints: ModelEndpoints, timeouts: CallTimeouts) -> Self {
        let transport = HttpTransport::new(timeouts.connect_ms);
        ModelClient {
            endpoints,
            timeouts,
            prices: None,
            delivery: AnswerDelivery::Streamed,
            clock: wall_clock_ms,
            transport,
        }
    }

    /// Selects between streamed (the default) and complete answers. A complete answer has no first
    /// byte until it is done, so only the absolute timeout applies to it.
    #[must_use]
    pub fn with_streaming(mut self, streaming: bool) -> Self {
        self.delivery = if streaming { AnswerDelivery::Streamed } else { AnswerDelivery::Whole };
        self
    }

    /// Sets the table with the models' limits.
    #[must_use]
    pub fn with_prices(mut self, prices: ModelPrices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// Sets the clock, in milliseconds since 1970, for comparisons with servers' dates.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> u64) -> Self {
        self.clock = clock;
        self
    }

    fn build_call(&self, request: &ModelRequest<'_>) -> Result<ModelCallRequest, ModelError> {
        let service = request.model.service;
        let missing = |message: String| ModelError::NotConfigured { service, message };
        let endpoint = self.endpoints.get(service);
        let endpoint = endpoint.ok_or_else(|| missing("there is no address for it".to_owned()))?;
        let protocol = service.protocol();
        let url = api_url(protocol, &endpoint.base_url).map_err(missing)?;
        let headers = build_headers(protocol, endpoint.key.as_ref()).map_err(missing)?;
        let prices = self.prices.clone().unwrap_or_else(ModelPrices::builtin);
        let limit = prices.get(request.model).map(|info| info.output_tokens_max);
        let body = protocol.request_body(request, limit, self.delivery);
        Ok(ModelCallRequest {
            service,
            url,
            headers,
            body: body.to_string(),
            key: endpoint.key.clone(),
            decoder: protocol.new_decoder(request),
            delivery: self.delivery,
            timeouts: self.timeouts,
            clock: self.clock,
            transport: self.transport.clone(),
        })
    }
}

impl ModelProvider for ModelClient {
    fn stream(&self, request: &ModelRequest<'_>) -> DeltaStream {
        match self.build_call(request) {
            Ok(call) => call.start(),
            Err(error) => stream::once(std::future::ready(Err(error))).boxed(),
        }
    }
}

fn wall_clock_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// The URL of the API.
fn api_url(protocol: &dyn ModelProtocol, base_url: &str) -> Result<Url, String> {
    let refused = |why: &str| format!("its address `{}` {why}", without_secrets(base_url));
    let mut url = Url::parse(base_url.trim()).map_err(|_| refused("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("begins with neither http:// nor https://"));
    }
    let path = protocol.api_path(url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_fragment(None);
    Ok(url)
}

fn build_headers(
    protocol: &dyn ModelProtocol,
    key: Option<&ApiSecret>,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in protocol.fixed_headers() {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    let Some(key) = key.map(|key| key.reveal().trim()).filter(|key| !key.is_empty()) else {
        return Ok(headers);
    };
    let (name, text) = protocol.key_header(key);
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| "its key has characters that cannot be sent".to_owned())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

/// Builds the body of a streamed request, for previews.
pub fn body(
    request: &ModelRequest<'_>,
    info: Option<&crate::prices::ModelInfo>,
) -> serde_json::Value {
    let limit = info.map(|info| info.output_tokens_max);
    request.model.service.protocol().request_body(request, limit, AnswerDelivery::Streamed)
}

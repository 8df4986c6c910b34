//! Settings of the HTTP server.

use std::time::Duration;

use noetl_access::{Auth, InternalToken, Network, Sessions};
use noetl_egress::EgressPolicy;
use noetl_web::Site;

/// Default of [`Options::body_limit`]: the limit of the published wire format.
const BODY_LIMIT: usize = 2 << 20;

/// Default of [`Options::requests_max`], for each server process.
const REQUESTS_MAX: usize = 1024;

/// Default of [`Options::anonymous_max`]: a quarter of the limit for other requests, so that
/// anonymous callers cannot starve authenticated ones.
const ANONYMOUS_MAX: usize = 256;

/// Default time for a body of a caller without a token. Messages to listeners have at most 2 MiB,
/// which a server's uplink sends in well under this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// Default of [`Options::body_min_rate`]: slower than any modem.
const BODY_MIN_RATE: u64 = 1024;

/// Default of [`Options::address_rate_limit`]: more than people and message senders need, and low
/// enough to leave capacity for others.
const ADDRESS_RATE_LIMIT: f64 = 1000.0;

/// Default of [`Options::listener_rate_limit`], per second.
const LISTENER_RATE_LIMIT: f64 = 500.0;

/// Default of [`Options::connections_max`], for each listener.
const CONNECTIONS_MAX: usize = 16_384;

/// Default of [`Options::request_timeout`]. The server may hold a report for up to 20 seconds while
/// the journal is busy.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(60);

/// Default of [`Options::streams_max`]. Each stream occupies a connection and buffers the data that
/// its client has not read.
const STREAMS_MAX: usize = 1024;

/// Default of [`Options::tenant_streams_max`]: a quarter of all streams.
const TENANT_STREAMS_MAX: usize = 256;

/// Origins of other web pages that may call the API. The server's own pages are always allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Pages of these origins, such as `https://noetl.example`.
    Listed(Vec<String>),
    Any,
}

impl Default for CorsOrigins {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

/// Settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Authentication mode. Default: [`Auth::Open`].
    pub auth: Auth,
    /// Origins of other web pages that may call the API. Default: none.
    pub cors_origins: CorsOrigins,
    /// Maximum size of a request body, in bytes. Default: 2 MiB.
    pub body_limit: usize,
    /// Value of `version` in `GET /api/health`. Default: the version of this crate.
    pub version: String,
    /// Whether requests whose `Host` is not loopback are accepted. Default: `false`, so that a web
    /// page cannot reach the control plane through a DNS name of its own.
    pub allow_any_host: bool,
    /// Egress policy for the identity providers that listeners name. Default: all addresses except
    /// cloud metadata services.
    pub egress: EgressPolicy,
    /// Access token of the internal routes. Default: none, so every request to them is rejected.
    pub internal_token: InternalToken,
    /// Database of the sessions that gateways validate. Default: none, so access tokens are the
    /// only sessions.
    pub sessions: Option<Sessions>,
    /// Whether `GET /metrics` is enabled. Default: `true`.
    pub has_metrics: bool,
    /// Maximum requests in flight, excluding routes that need no token. Default: 1,024.
    pub requests_max: usize,
    /// Maximum requests in flight on routes that need no token; at most half of them may have a
    /// body. Default: 256.
    pub anonymous_max: usize,
    /// Maximum time to receive a body on routes that need no token. On other routes,
    /// `request_timeout` applies. Default: 15 seconds.
    pub body_timeout: Duration,
    /// Minimum rate of a request body after its first five seconds, in bytes per second; 0 for no
    /// minimum. Default: 1,024.
    pub body_min_rate: u64,
    /// Maximum open streams. Default: 1,024.
    pub streams_max: usize,
    /// Maximum open streams per tenant. Default: 256.
    pub tenant_streams_max: usize,
    /// Maximum open connections. At the limit, a new connection replaces the oldest one that is
    /// idle and never made an authenticated request. Default: 16,384.
    pub connections_max: usize,
    /// Maximum requests per second and tenant. Default: unlimited.
    pub rate_limit: Option<f64>,
    /// Maximum requests per second and client address without a valid token. Default: 1,000.
    pub address_rate_limit: Option<f64>,
    /// Maximum messages per second to one listener from one client address. Default: 500.
    pub listener_rate_limit: Option<f64>,
    /// Proxies whose `X-Forwarded-For` header names the client address. Default: none.
    pub trusted_proxies: Vec<Network>,
    /// Maximum duration of a request. Default: 60 seconds.
    pub request_timeout: Duration,
    /// Maximum idle time of a connection, before its first request and between requests. Default:
    /// 60 seconds, longer than the heartbeat interval of workers, so that no heartbeat is sent into
    /// a closing connection.
    pub silence: Duration,
    /// Files of the web UI. Default: the files built into the program.
    pub site: Site,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            auth: Auth::default(),
            cors_origins: CorsOrigins::default(),
            body_limit: BODY_LIMIT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            allow_any_host: false,
            egress: EgressPolicy::default(),
            internal_token: InternalToken::default(),
            sessions: None,
            has_metrics: true,
            requests_max: REQUESTS_MAX,
            anonymous_max: ANONYMOUS_MAX,
            body_timeout: BODY_TIMEOUT,
            body_min_rate: BODY_MIN_RATE,
            streams_max: STREAMS_MAX,
            tenant_streams_max: TENANT_STREAMS_MAX,
            connections_max: CONNECTIONS_MAX,
            rate_limit: None,
            address_rate_limit: Some(ADDRESS_RATE_LIMIT),
            listener_rate_limit: Some(LISTENER_RATE_LIMIT),
            trusted_proxies: Vec::new(),
            request_timeout: REQUEST_TIMEOUT,
            silence: SILENCE,
            site: Site::default(),
        }
    }
}

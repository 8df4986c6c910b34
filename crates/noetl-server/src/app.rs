//! What every route shares.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_bus::EventStream;
use noetl_control::{Control, Role};
use noetl_fence::Fence;
use noetl_model::Tenant;
use noetl_web::Site;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::http::address::Network;
use crate::http::limits::Places;
use crate::http::rate::Requests;
use crate::http::streams::Streams;
use crate::oidc::{Issuers, Oidc};
use crate::sessions::Sessions;
use crate::sign_in_codes::{CodeHolder, SignInCodes};

/// The largest request body that is taken when nothing else is said: the wire's own limit.
const BODY_LIMIT: usize = 2 << 20;

/// Requests answered at a time when nothing else is said.
const REQUESTS_MAX: usize = 1024;

/// Requests of callers without a token that are answered at a time when nothing else is said: a
/// quarter of the others, so that they cannot keep those from their share of the machine.
const ANONYMOUS_MAX: usize = 256;

/// Default time for a body of a caller without a token. Messages to listeners have at most 2 MiB,
/// which a server's uplink sends in well under this time.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes a second that a body arrives at when nothing else is said: slower than any modem.
const BODY_MIN_RATE: u64 = 1024;

/// Requests a second without a good token from one address when nothing else is said: more than
/// people and senders of messages make, and few enough to leave room for others.
const ADDRESS_RATE_LIMIT: f64 = 1000.0;

/// Messages a second to one listener from one address when nothing else is said.
const LISTENER_RATE_LIMIT: f64 = 500.0;

/// Connections at a time when nothing else is said.
const CONNECTIONS_MAX: usize = 16_384;

/// How long a request may take when nothing else is said. A report may be held for 20 s while the
/// journal is busy.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(60);

/// Streams open at a time when nothing else is said: each holds a connection, and some memory for
/// what its reader has not taken yet.
const STREAMS_MAX: usize = 1024;

/// Streams of one tenant at a time when nothing else is said: a quarter of all.
const TENANT_STREAMS_MAX: usize = 256;

/// Large results that are carried at a time.
pub(crate) const TRANSFERS_MAX: usize = 256;

/// Web pages of other origins that may call. The server's own pages always may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Pages of these origins, as `https://noetl.example`.
    Listed(Vec<String>),
    Any,
}

impl Default for CorsOrigins {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

/// Where the token of the internal routes comes from. It is asked for with every request.
#[derive(Clone)]
pub struct InternalToken(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl InternalToken {
    /// A token that is read anew every time; none closes the internal routes.
    pub fn read_by(read: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn read(&self) -> Option<String> {
        (self.0)()
    }
}

impl Default for InternalToken {
    /// None.
    fn default() -> Self {
        Self::read_by(|| None)
    }
}

impl fmt::Debug for InternalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InternalToken")
    }
}

/// How callers are known.
#[derive(Debug, Clone, Default)]
pub enum Auth {
    /// Not at all: everybody who can reach the listener may ask everything but the internal routes.
    #[default]
    Open,
    /// By a token of ours.
    Token,
    /// By a token of an identity provider, or by one of ours.
    Oidc(Oidc),
}

/// Settings of the HTTP edge.
#[derive(Debug, Clone)]
pub struct Options {
    /// How callers are known. Default: not at all.
    pub auth: Auth,
    /// Web pages of other origins that may call. Default: none.
    pub cors_origins: CorsOrigins,
    /// The largest request body, in bytes. Default: 2 MiB.
    pub body_limit: usize,
    /// What `GET /api/health` answers as `version`. Default: this crate's.
    pub version: String,
    /// Whether a `Host` that is not loopback is answered. Default: no, so that a web page cannot
    /// reach the control plane under a name of its own.
    pub allow_any_host: bool,
    /// Which identity providers listeners may name. Default: all that are not where a cloud tells
    /// its machines who they are.
    pub fence: Fence,
    /// The token of the internal routes. Default: none, so that they answer nobody.
    pub internal_token: InternalToken,
    /// Database of the sessions that gateways validate. Default: none, so that access tokens are the
    /// only sessions.
    pub sessions: Option<Sessions>,
    /// Whether `GET /metrics` answers. Default: yes.
    pub has_metrics: bool,
    /// Requests answered at a time, besides those on routes that ask for no token. Default: 1024.
    pub requests_max: usize,
    /// Requests in flight on routes that need no token; half of them may have a body. Default: 256.
    pub anonymous_max: usize,
    /// Longest wait for a body on routes that ask for no token. On others `request_timeout` is the
    /// limit. Default: 15 seconds.
    pub body_timeout: Duration,
    /// Minimum rate of a request body after its first five seconds, in bytes per second; 0 for no
    /// minimum. Default: 1,024.
    pub body_min_rate: u64,
    /// Streams open at a time. Default: 1024.
    pub streams_max: usize,
    /// Streams of one tenant at a time. Default: 256.
    pub tenant_streams_max: usize,
    /// Open connections. At the limit, a new one replaces the oldest that is idle and never showed
    /// a token. Default: 16,384.
    pub connections_max: usize,
    /// Requests a second that each tenant may make. Default: as many as it likes.
    pub rate_limit: Option<f64>,
    /// Requests a second without a good token from one address. Default: 1000.
    pub address_rate_limit: Option<f64>,
    /// Messages a second to one listener from one address. Default: 500.
    pub listener_rate_limit: Option<f64>,
    /// Proxies whose `X-Forwarded-For` names the address of a caller. Default: none.
    pub trusted_proxies: Vec<Network>,
    /// How long one may take. Default: a minute.
    pub request_timeout: Duration,
    /// How long a connection may say nothing, before its first request and between two. Default: a
    /// minute, longer than workers rest between two heartbeats, so that none of them is sent into
    /// a closing connection.
    pub silence: Duration,
    /// The web UI. Default: what the program was built with.
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
            fence: Fence::default(),
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

/// A control plane with the settings of its HTTP edge. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) control: Arc<Control>,
    pub(crate) options: Arc<Options>,
    /// Whose rows callers see. Callers without a token are all the same tenant.
    pub(crate) tenant: Tenant,
    pub(crate) bus: Option<Arc<dyn EventStream>>,
    /// One for each request that is answered.
    pub(crate) places: Places,
    /// How many requests came lately.
    pub(crate) requests: Requests,
    /// Streams that are open.
    pub(crate) streams: Streams,
    /// Large results that may still be carried.
    pub(crate) transfers: Arc<Semaphore>,
    /// Ends streams, which would never end by themselves, when the server stops.
    pub(crate) stopping: CancellationToken,
    /// Identity providers of listeners.
    pub(crate) issuers: Issuers,
    /// Codes that sign a browser in.
    pub(crate) codes: SignInCodes,
    since: Instant,
}

impl App {
    /// Puts an HTTP edge in front of a control plane.
    pub fn new(control: Arc<Control>, options: Options) -> Self {
        let tenant = Tenant::default();
        let places = Places::new(&options);
        let options = Arc::new(options);
        let (streams, stopping) = (Streams::default(), CancellationToken::new());
        let transfers = Arc::new(Semaphore::new(TRANSFERS_MAX));
        let (since, requests) = (Instant::now(), Requests::default());
        let issuers = Issuers::behind(options.fence.clone());
        Self {
            control,
            options,
            tenant,
            bus: None,
            places,
            requests,
            streams,
            transfers,
            stopping,
            issuers,
            codes: SignInCodes::default(),
            since,
        }
    }

    /// The same with the bus whose state `GET /api/health` tells.
    #[must_use]
    pub fn with_bus(self, bus: Option<Arc<dyn EventStream>>) -> Self {
        Self { bus, ..self }
    }

    /// Creates a one-time code that signs a browser in as an admin of the default tenant. The code
    /// expires after [`CODE_LASTS`](crate::CODE_LASTS).
    pub fn sign_in_code(&self) -> String {
        let (tenant, role) = (Tenant::default(), Role::Admin);
        let holder = CodeHolder { tenant, role, actor: "the start of the server".into() };
        self.codes.issue(holder, Instant::now())
    }

    /// The same for callers of this tenant.
    pub(crate) fn of(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.since.elapsed()
    }
}

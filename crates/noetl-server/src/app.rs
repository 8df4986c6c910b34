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

use crate::http::rate::Requests;
use crate::oidc::{Issuers, Oidc};
use crate::sign_in_codes::{CodeHolder, SignInCodes};

/// The largest request body that is taken when nothing else is said: the wire's own limit.
const BODY_LIMIT: usize = 2 << 20;

/// Requests answered at a time when nothing else is said.
const REQUESTS_MAX: usize = 1024;

/// How long a request may take when nothing else is said. A report may be held for 20 s while the
/// journal is busy.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(60);

/// How many streams are open at a time: each holds a connection, and some memory for what its reader
/// has not taken yet.
pub(crate) const STREAMS_MAX: usize = 256;

/// Web pages of other origins that may call. The server's own pages always may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Pages of these origins, as `https://noetl.example`.
    Listed(Vec<String>),
    /// All of them.
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
    /// Whether `GET /metrics` answers. Default: yes.
    pub has_metrics: bool,
    /// Requests answered at a time. Default: 1024.
    pub requests_max: usize,
    /// Requests a second that each tenant may make. Default: as many as it likes.
    pub rate_limit: Option<f64>,
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
            has_metrics: true,
            requests_max: REQUESTS_MAX,
            rate_limit: None,
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
    pub(crate) places: Arc<Semaphore>,
    /// How many requests came lately.
    pub(crate) requests: Requests,
    /// Streams that may still be opened.
    pub(crate) streams: Arc<Semaphore>,
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
        let places = Arc::new(Semaphore::new(options.requests_max.min(Semaphore::MAX_PERMITS)));
        let options = Arc::new(options);
        let (streams, stopping) = (Arc::new(Semaphore::new(STREAMS_MAX)), CancellationToken::new());
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

    /// Makes a one-time code that signs a browser in as an admin of the default tenant. It counts
    /// for [`CODE_LASTS`](crate::CODE_LASTS).
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

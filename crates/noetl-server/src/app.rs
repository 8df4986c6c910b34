//! State shared by all routes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_access::{Access, CodeHolder, Issuers, Options as AccessOptions, SignInCodes};
use noetl_bus::EventStream;
use noetl_control::ControlPlane;
use noetl_model::Tenant;
use noetl_secrets::Role;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::capacity::{Places, RequestLimiter, Streams};
use crate::options::Options;

/// Maximum concurrent transfers of large results.
pub(crate) const TRANSFERS_MAX: usize = 256;

/// A control plane with the state of its HTTP server. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) control: Arc<ControlPlane>,
    pub(crate) options: Arc<Options>,
    /// Finds the caller of each request by its headers.
    pub(crate) access: Access,
    /// Tenant whose rows the caller sees. All callers without a token share the default tenant.
    pub(crate) tenant: Tenant,
    pub(crate) bus: Option<Arc<dyn EventStream>>,
    /// Permits for requests in flight.
    pub(crate) places: Places,
    /// Request counts for rate limits.
    pub(crate) requests: RequestLimiter,
    /// Open streams, by tenant.
    pub(crate) streams: Streams,
    /// Permits for transfers of large results.
    pub(crate) transfers: Arc<Semaphore>,
    /// Connections of workers. The server waits for their end when it stops.
    pub(crate) worker_connections: TaskTracker,
    /// Ends open streams when the server stops.
    pub(crate) stopping: CancellationToken,
    /// Clients of the identity providers that listeners name, with their cached keys.
    pub(crate) issuers: Issuers,
    /// Pending one-time codes for browser sign-in.
    pub(crate) codes: SignInCodes,
    since: Instant,
}

impl App {
    /// Creates the HTTP application of a control plane.
    pub fn new(control: Arc<ControlPlane>, options: Options) -> Self {
        let tenant = Tenant::default();
        let places = Places::new(&options);
        let access = AccessOptions {
            auth: options.auth.clone(),
            internal_token: options.internal_token.clone(),
            sessions: options.sessions.clone(),
        };
        let access = Access::new(access, &control.secrets);
        let options = Arc::new(options);
        let (streams, stopping) = (Streams::default(), CancellationToken::new());
        let transfers = Arc::new(Semaphore::new(TRANSFERS_MAX));
        let (since, requests) = (Instant::now(), RequestLimiter::default());
        let issuers = Issuers::with_policy(options.egress.clone());
        Self {
            control,
            options,
            access,
            tenant,
            bus: None,
            places,
            requests,
            streams,
            transfers,
            worker_connections: TaskTracker::new(),
            stopping,
            issuers,
            codes: SignInCodes::default(),
            since,
        }
    }

    /// Sets the bus whose state `GET /api/health` reports.
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

    /// Returns the application with `tenant` as the caller's tenant.
    pub(crate) fn for_tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.since.elapsed()
    }
}

//! Permits of requests in flight.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::options::Options;

/// Maximum requests for the health of the control plane in flight.
pub(crate) const HEALTH_MAX: usize = 64;

/// Permits of requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Places {
    /// Requests on routes that need a role, including all of them in open mode.
    pub(crate) known: Arc<Semaphore>,
    /// Requests on routes that need no token.
    pub(crate) anonymous: Arc<Semaphore>,
    /// Requests with a body on routes that need no token.
    pub(crate) anonymous_bodies: Arc<Semaphore>,
    pub(crate) health: Arc<Semaphore>,
}

/// Permits of one request in flight.
#[derive(Debug, Default)]
pub(crate) struct RequestPermit {
    pub(crate) _request: Option<OwnedSemaphorePermit>,
    pub(crate) _body: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(crate) fn new(options: &Options) -> Self {
        let room = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            known: room(options.requests_max),
            anonymous: room(options.anonymous_max),
            anonymous_bodies: room(options.anonymous_max.div_ceil(2)),
            health: room(HEALTH_MAX),
        }
    }
}

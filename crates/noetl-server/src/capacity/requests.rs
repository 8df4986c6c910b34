//! Request counts for rate limits.

use std::net::IpAddr;
use std::sync::Arc;

use noetl_catalog::RateLimiter;
use noetl_model::Tenant;
use noetl_store::Digest;

/// Request counters. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RequestLimiter {
    pub(crate) tenants: Arc<RateLimiter<Option<Tenant>>>,
    /// Requests without a valid token.
    pub(crate) addresses: Arc<RateLimiter<IpAddr>>,
    /// Messages by the digest of the listener's path, because the path may be long, and by client
    /// address.
    pub(crate) listeners: Arc<RateLimiter<(Digest, IpAddr)>>,
}

//! Limits on open streams, in total and per tenant.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::Tenant;

use crate::error::ApiError;
use crate::options::Options;

/// `Retry-After` of a tenant at its stream limit. A stream can close at any time.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Open streams by tenant. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<Tenant, usize>>>);

/// Permit for one stream, released when dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    tenant: Tenant,
    streams: Streams,
}

impl Streams {
    /// Acquires a permit for a stream of a tenant.
    pub(crate) fn open(
        &self,
        options: &Options,
        tenant: &Tenant,
    ) -> Result<StreamPermit, ApiError> {
        let (most, most_of_one) = (options.streams_max, options.tenant_streams_max);
        let mut open = self.counts();
        if open.values().sum::<usize>() >= most {
            let message = format!("{most} streams are open; retry after 1 second");
            return Err(ApiError::unavailable("too_many_streams", message));
        }
        let count = open.entry(tenant.clone()).or_default();
        if *count >= most_of_one {
            let message = format!(
                "tenant '{}' has {most_of_one} streams open, which is as many as it may have: close \
                 one, read /api/executions/{{id}}/events instead, or raise \
                 NOETL_TENANT_STREAMS_MAX",
                tenant.as_str()
            );
            return Err(ApiError::too_many("tenant_streams_exceeded", message, RETRY_AFTER));
        }
        *count += 1;
        Ok(StreamPermit { tenant: tenant.clone(), streams: self.clone() })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Tenant, usize>> {
        // Each count is written in one operation, so the map is consistent even if the lock is
        // poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.counts();
        if let Some(count) = open.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.tenant);
            }
        }
    }
}

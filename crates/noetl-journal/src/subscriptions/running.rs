//! Leases of subscription runtimes: one runs a subscription at a time, while others wait.

use std::time::Duration;

use noetl_model::{SubscriptionId, Tenant};
use tokio::sync::watch;

use super::{SubscriptionError, Subscriptions};

/// Returns the lease name of the runtime of a subscription.
pub(super) fn acting(id: SubscriptionId) -> String {
    format!("subscription:{id}")
}

/// Returns the lease name prefix of the runtimes that wait for a subscription.
fn waiting(id: SubscriptionId) -> String {
    format!("subscription:{id}:waits:")
}

impl Subscriptions {
    /// Returns a receiver that changes when this process registers or moves a subscription.
    pub fn moves(&self) -> watch::Receiver<()> {
        self.moves.subscribe()
    }

    /// Returns `true` if other processes can move subscriptions too, which [`Self::moves`] doesn't
    /// report.
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Acquires or renews the lease of a runtime on a subscription for `ttl`. Returns `false` if
    /// another runtime holds it; then this one is recorded as waiting for `ttl`.
    pub async fn hold(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        holder: &str,
        ttl: Duration,
    ) -> Result<bool, SubscriptionError> {
        self.get(tenant, id).await?;
        let held = self.store.acquire(&acting(id), holder, ttl).await;
        if held.map_err(SubscriptionError::Store)?.is_some() {
            return Ok(true);
        }
        let name = format!("{}{holder}", waiting(id));
        let waits = self.store.acquire(&name, holder, ttl).await;
        waits.map_err(SubscriptionError::Store)?;
        Ok(false)
    }

    /// Releases the lease of a runtime on a subscription, or ends its wait.
    pub async fn let_go(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        holder: &str,
    ) -> Result<(), SubscriptionError> {
        self.get(tenant, id).await?;
        let live = self.store.live(&acting(id)).await.map_err(SubscriptionError::Store)?;
        let waits = format!("{}{holder}", waiting(id));
        let is_its = |name: &str| name == acting(id) || name == waits;
        for lease in live.iter().filter(|lease| lease.holder == holder && is_its(&lease.name)) {
            self.store.release(lease).await.map_err(SubscriptionError::Store)?;
        }
        // Wakes runtimes of this process that wait, before their next poll.
        self.moves.send_replace(());
        Ok(())
    }

    /// Returns `true` if another runtime waits for the subscription.
    pub async fn is_awaited(
        &self,
        tenant: &Tenant,
        id: SubscriptionId,
        holder: &str,
    ) -> Result<bool, SubscriptionError> {
        self.get(tenant, id).await?;
        let live = self.store.live(&waiting(id)).await.map_err(SubscriptionError::Store)?;
        Ok(live.iter().any(|lease| lease.holder != holder))
    }
}

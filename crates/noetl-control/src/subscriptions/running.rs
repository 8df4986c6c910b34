//! Who acts on a subscription: one runtime at a time, under a lease, while others wait for it.

use std::time::Duration;

use noetl_model::{SubscriptionId, Tenant};
use tokio::sync::watch;

use super::{SubscriptionError, Subscriptions};

/// The lease of whoever acts on a subscription.
pub(super) fn acting(id: SubscriptionId) -> String {
    format!("subscription:{id}")
}

/// How the leases begin of those who wait to.
fn waiting(id: SubscriptionId) -> String {
    format!("subscription:{id}:waits:")
}

impl Subscriptions {
    /// Changes when a subscription was registered or moved in this process.
    pub fn moves(&self) -> watch::Receiver<()> {
        self.moves.subscribe()
    }

    /// Whether other processes move subscriptions too, which [`Self::moves`] does not tell of.
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Lets a runtime act on a subscription for `ttl` from now, or go on with it. False when another
    /// does; then this one is known to wait for so long.
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

    /// Ends that a runtime acts on a subscription, or waits to.
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
        // Whoever waits in this process need not wait for its next look.
        self.moves.send_replace(());
        Ok(())
    }

    /// Whether a runtime other than this one waits to act on a subscription.
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

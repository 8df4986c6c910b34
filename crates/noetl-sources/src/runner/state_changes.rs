//! Changes the state of a subscription, alone or among several runtimes.

use std::time::Duration;

use noetl_store::SubscriptionAction;
use tracing::warn;

use super::{NextAction, Runner};
use crate::RETRY;
use crate::control_plane::SubscriptionView;
use crate::deps::ShutdownAction;
use crate::lease::SubscriptionLease;

/// Time that shutdown waits for the lease of a subscription this runtime doesn't run.
const LEAVE_WAIT: Duration = Duration::from_secs(1);

impl Runner {
    /// Changes the subscription's state, retrying on errors. Returns the resulting status, even if
    /// another process changed it, or `None` if the runtime stops.
    async fn act(
        &self,
        view: &SubscriptionView,
        action: SubscriptionAction,
        failures: &mut u32,
    ) -> Option<SubscriptionView> {
        loop {
            let error = match self.parts.plane.act(view.id, action).await {
                Ok(moved) => {
                    *failures = 0;
                    return Some(moved);
                }
                Err(error) => error,
            };
            // Another process may have changed the state meanwhile.
            if let Ok(now) = self.parts.plane.view(view.id).await
                && now != *view
            {
                return Some(now);
            }
            if *failures == 0 {
                let action = action.as_str();
                warn!(
                    subscription = view.path, action, %error,
                    "subscription state change failed, retrying"
                );
            }
            *failures += 1;
            tokio::select! {
                () = self.stop.cancelled() => return None,
                () = tokio::time::sleep(RETRY.delay(*failures)) => {}
            }
        }
    }

    /// Changes the state of a subscription without messages in flight, once its lease is free. Without
    /// the lease, each of several runtimes would do so, and a later activation would make the first
    /// runtime connect again.
    pub(super) async fn act_under_lease(
        &self,
        view: &SubscriptionView,
        action: SubscriptionAction,
        failures: &mut u32,
    ) -> NextAction {
        let lease = tokio::select! {
            lease = SubscriptionLease::take(&self.parts.plane, view, &self.parts.terms) => lease,
            moved = self.parts.plane.changed(view) => return NextAction::Moved(moved),
            () = self.stop.cancelled() => return NextAction::Stopped,
        };
        // Another runtime may have changed it before this one got the lease.
        let moved = match self.parts.plane.view(view.id).await {
            Ok(now) if now != *view => Some(now),
            _ => self.act(view, action, failures).await,
        };
        lease.release().await;
        moved.map_or(NextAction::Stopped, NextAction::Moved)
    }

    /// Deactivates a subscription without messages in flight, if configured for shutdown and no
    /// other runtime holds or awaits its lease.
    pub(super) async fn leave(&self, view: &SubscriptionView) {
        if self.parts.at_end != ShutdownAction::Deactivate {
            return;
        }
        let acquiring = SubscriptionLease::take(&self.parts.plane, view, &self.parts.terms);
        // On a timeout, the holder of the lease is responsible for deactivating it.
        if let Ok(lease) = tokio::time::timeout(LEAVE_WAIT, acquiring).await {
            if !lease.is_awaited() {
                self.ask(view, SubscriptionAction::Drain).await;
                self.ask(view, SubscriptionAction::Deactivate).await;
            }
            lease.release().await;
        }
    }

    /// Changes the subscription's state once, without retries.
    pub(super) async fn ask(&self, view: &SubscriptionView, action: SubscriptionAction) {
        if let Err(error) = self.parts.plane.act(view.id, action).await {
            let action = action.as_str();
            warn!(subscription = view.path, action, %error, "subscription state change failed");
        }
    }
}

//! Dependencies that the runners of a runtime share.

use std::sync::Arc;

use crate::control_plane::ControlPlaneClient;
use crate::lease::LeaseTerms;
use crate::registry::SourceRegistry;

/// Action on a subscription when its runtime closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShutdownAction {
    /// Leaves the subscription's state unchanged.
    Leave,
    /// Drains and deactivates the subscription, unless another runtime waits for its lease.
    Deactivate,
}

#[derive(Clone)]
pub(crate) struct RuntimeDeps {
    pub(crate) plane: Arc<dyn ControlPlaneClient>,
    pub(crate) sources: SourceRegistry,
    pub(crate) terms: LeaseTerms,
    pub(crate) at_end: ShutdownAction,
}

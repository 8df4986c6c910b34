//! Who asks, and what of the control plane they see.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use noetl_model::Tenant;

use super::roles::Roles;
use crate::app::App;

/// Who asks. Every request that reaches a handler has one.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// What records and logs call it.
    pub(crate) name: Arc<str>,
    /// Whose rows it sees.
    pub(crate) tenant: Tenant,
    /// What it may do.
    pub(crate) roles: Roles,
}

impl Caller {
    /// Whoever asks where no token is needed: everything but the internal routes.
    pub(crate) fn anybody() -> Self {
        Self { name: "anybody".into(), tenant: Tenant::default(), roles: Roles::everything() }
    }

    /// Whoever asks what everybody may.
    pub(crate) fn nobody() -> Self {
        Self { name: "nobody".into(), tenant: Tenant::default(), roles: Roles::NONE }
    }

    /// A system pool with the internal token.
    pub(crate) fn internal() -> Self {
        let roles = Roles::WORKER.and(Roles::INTERNAL);
        Self { name: "internal".into(), tenant: Tenant::default(), roles }
    }
}

/// The control plane as the caller of a request sees it: with its tenant.
pub(crate) struct Scoped(pub(crate) App);

impl FromRequestParts<App> for Scoped {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let app = app.clone();
        Ok(match parts.extensions.get::<Caller>() {
            None => Self(app),
            Some(caller) => Self(app.of(caller.tenant.clone())),
        })
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(Self::nobody))
    }
}

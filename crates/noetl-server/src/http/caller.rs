//! Who asks, and what of the control plane they see.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use noetl_control::Scope;
use noetl_model::{ExecutionId, Tenant};

use super::roles::Roles;
use crate::app::App;
use crate::error::ApiError;

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

    /// Whose commands and executions it works for: its tenant's, or everybody's.
    pub(crate) fn scope(&self) -> Scope {
        (!self.roles.holds_any_of(Roles::INTERNAL)).then(|| self.tenant.clone())
    }

    /// Whether it may see to what all tenants share.
    pub(crate) fn looks_after_all(&self) -> bool {
        self.scope().is_none() || self.tenant == Tenant::default()
    }

    /// A system pool with the internal token.
    pub(crate) fn internal() -> Self {
        let roles = Roles::WORKER.and(Roles::INTERNAL);
        Self { name: "internal".into(), tenant: Tenant::default(), roles }
    }
}

impl App {
    /// The control plane as a caller sees it that speaks of an execution: one that works for every
    /// tenant sees it with that execution's.
    pub(crate) async fn for_execution(
        self,
        caller: &Caller,
        execution: ExecutionId,
    ) -> Result<Self, ApiError> {
        if caller.scope().is_some() {
            return Ok(self);
        }
        let tenant = self.control.workers.tenant_of(execution).await?;
        Ok(match tenant {
            Some(tenant) => self.of(tenant),
            None => self,
        })
    }
}

/// The control plane as the caller of a request sees it: with its tenant.
pub(crate) struct Scoped(pub(crate) App);

impl FromRequestParts<App> for Scoped {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
            return Ok(Self(app.clone()));
        };
        let app = app.clone().of(caller.tenant.clone());
        if caller.scope().is_some() {
            return Ok(Self(app));
        }
        match execution_in(parts).await {
            Some(execution) => app.for_execution(&caller, execution).await.map(Self),
            None => Ok(Self(app)),
        }
    }
}

/// Routes about one execution.
const OF_ONE: [&str; 4] = [
    "/api/executions/{id}",
    "/api/vars/{execution_id}",
    "/api/result/{execution_id}",
    "/api/ehdb/executions/{id}",
];

/// The execution that a path is about. One that cannot be read is the handler's to refuse.
async fn execution_in(parts: &mut Parts) -> Option<ExecutionId> {
    let route = parts.extensions.get::<MatchedPath>()?.as_str();
    OF_ONE.iter().find(|of_one| route.starts_with(**of_one))?;
    let named = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    let (_, id) = named.iter().find(|(name, _)| matches!(*name, "id" | "execution_id"))?;
    id.parse().ok()
}

impl FromRequestParts<App> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(Self::nobody))
    }
}

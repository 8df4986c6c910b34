//! Who asks, and what of the control plane they see.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use noetl_control::{Scope, WorkerBinding};
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
    /// Roles that let the caller through to this route.
    pub(crate) acting: Roles,
    /// Identity that records name: the ID of a token, the subject of an identity provider, or the
    /// user of a session and the token that acts for it.
    pub(crate) actor: Arc<str>,
    /// Identity that grants name: never a session.
    pub(crate) grantee: Arc<str>,
    /// Pool that a worker's token is bound to.
    pub(crate) pool: Option<Arc<str>>,
}

impl Caller {
    /// Whoever asks where no token is needed: everything but the internal routes.
    pub(crate) fn anybody() -> Self {
        Self::known_as("anybody", Roles::everything())
    }

    /// Whoever asks what everybody may.
    pub(crate) fn nobody() -> Self {
        Self::known_as("nobody", Roles::NONE)
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
        Self::known_as("internal", Roles::WORKER.and(Roles::INTERNAL))
    }

    /// Returns a caller of the default tenant that has no identity beyond this name.
    pub(crate) fn known_as(name: &str, roles: Roles) -> Self {
        let (tenant, name) = (Tenant::default(), Arc::<str>::from(name));
        let (actor, grantee) = (name.clone(), name.clone());
        Self { name, tenant, roles, acting: roles, actor, grantee, pool: None }
    }

    /// Returns `true` if records can tell the caller from others.
    pub(crate) fn has_identity(&self) -> bool {
        self.actor.contains(':') || self.roles.holds_any_of(Roles::INTERNAL)
    }

    /// Returns the identity that events and audit records name.
    pub(crate) fn identity(&self) -> Option<Arc<str>> {
        self.has_identity().then(|| self.actor.clone())
    }

    /// Returns what limits the caller to commands that it holds; `None` for admins and system pools.
    pub(crate) fn binding(&self) -> Option<WorkerBinding> {
        let is_bound = self.roles.holds_any_of(Roles::WORKER)
            && !self.roles.holds_any_of(Roles::ADMIN.and(Roles::INTERNAL));
        is_bound.then(|| WorkerBinding { tenant: self.tenant.clone(), pool: self.pool.clone() })
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

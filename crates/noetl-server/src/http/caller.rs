//! Identity of a caller, and the tenant scope of its request.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use noetl_journal::TenantScope;
use noetl_model::{ExecutionId, Tenant};
use noetl_secrets::WorkerBinding;

use super::roles::Roles;
use crate::app::App;
use crate::error::ApiError;

/// Authenticated or anonymous caller of a request. Every request that reaches a handler has one.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// Name shown in messages and logs.
    pub(crate) name: Arc<str>,
    /// Tenant whose rows the caller sees.
    pub(crate) tenant: Tenant,
    pub(crate) roles: Roles,
    /// Roles of the caller that the current route accepts.
    pub(crate) acting: Roles,
    /// Identity in events and audit records: the ID of a token, the subject at an identity
    /// provider, or the user of a session with the token that acts for it.
    pub(crate) actor: Arc<str>,
    /// Identity that path grants are checked against. Never a session.
    pub(crate) grantee: Arc<str>,
    /// Pool that a worker token is bound to.
    pub(crate) pool: Option<Arc<str>>,
}

impl Caller {
    /// Returns the caller of open mode, which may use all routes but the internal ones.
    pub(crate) fn anybody() -> Self {
        Self::known_as("anybody", Roles::everything())
    }

    /// Returns the anonymous caller of a route that needs no token.
    pub(crate) fn anonymous() -> Self {
        Self::known_as("nobody", Roles::NONE)
    }

    /// Returns the tenant whose commands and executions the caller works on. `None` means all
    /// tenants.
    pub(crate) fn scope(&self) -> TenantScope {
        (!self.roles.holds_any_of(Roles::INTERNAL)).then(|| self.tenant.clone())
    }

    /// Returns `true` if the caller may manage resources that all tenants share.
    pub(crate) fn looks_after_all(&self) -> bool {
        self.scope().is_none() || self.tenant == Tenant::default()
    }

    /// Returns the caller of a system pool, which presented the internal token.
    pub(crate) fn internal() -> Self {
        Self::known_as("internal", Roles::WORKER.and(Roles::INTERNAL))
    }

    /// Returns a caller of the default tenant that has no identity beyond this name.
    pub(crate) fn known_as(name: &str, roles: Roles) -> Self {
        let (tenant, name) = (Tenant::default(), Arc::<str>::from(name));
        let (actor, grantee) = (name.clone(), name.clone());
        Self { name, tenant, roles, acting: roles, actor, grantee, pool: None }
    }

    /// Returns `true` if audit records can distinguish the caller from others.
    pub(crate) fn has_identity(&self) -> bool {
        self.actor.contains(':') || self.roles.holds_any_of(Roles::INTERNAL)
    }

    /// Returns the identity that events and audit records name.
    pub(crate) fn identity(&self) -> Option<Arc<str>> {
        self.has_identity().then(|| self.actor.clone())
    }

    /// Returns the binding that limits the caller to commands it has leased, or `None` for admins,
    /// system pools, and callers that are not workers.
    pub(crate) fn binding(&self) -> Option<WorkerBinding> {
        let is_bound = self.roles.holds_any_of(Roles::WORKER)
            && !self.roles.holds_any_of(Roles::ADMIN.and(Roles::INTERNAL));
        is_bound.then(|| WorkerBinding { tenant: self.tenant.clone(), pool: self.pool.clone() })
    }
}

impl App {
    /// Returns the application in the tenant of an execution if the caller works for all tenants,
    /// and unchanged otherwise.
    pub(crate) async fn for_execution(
        self,
        caller: &Caller,
        execution: ExecutionId,
    ) -> Result<Self, ApiError> {
        if caller.scope().is_some() {
            return Ok(self);
        }
        let tenant = self.control.remote.workers.tenant_of(execution).await?;
        Ok(match tenant {
            Some(tenant) => self.for_tenant(tenant),
            None => self,
        })
    }
}

/// Extractor of the application, scoped to the caller's tenant.
pub(crate) struct Scoped(pub(crate) App);

impl FromRequestParts<App> for Scoped {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
            return Ok(Self(app.clone()));
        };
        let app = app.clone().for_tenant(caller.tenant.clone());
        if caller.scope().is_some() {
            return Ok(Self(app));
        }
        match execution_in(parts).await {
            Some(execution) => app.for_execution(&caller, execution).await.map(Self),
            None => Ok(Self(app)),
        }
    }
}

/// Prefixes of routes about a single execution.
const OF_ONE: [&str; 4] = [
    "/api/executions/{id}",
    "/api/vars/{execution_id}",
    "/api/result/{execution_id}",
    "/api/ehdb/executions/{id}",
];

/// Returns the execution ID in a request's path. The handler rejects an ID that doesn't parse.
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
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(Self::anonymous))
    }
}

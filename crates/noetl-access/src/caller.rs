//! Identity of a caller.

use std::sync::Arc;

use noetl_model::Tenant;
use noetl_secrets::{TokenHolder, WorkerBinding};

use crate::roles::Roles;

/// Authenticated or anonymous caller of a request. Every request that reaches a handler has one.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Name shown in messages and logs.
    pub name: Arc<str>,
    /// Tenant whose rows the caller sees.
    pub tenant: Tenant,
    /// Roles the caller has.
    pub roles: Roles,
    /// Roles of the caller that the current route accepts.
    pub acting: Roles,
    /// Identity in events and audit records: the ID of a token, the subject at an identity
    /// provider, or the user of a session with the token that acts for it.
    pub actor: Arc<str>,
    /// Identity that path grants are checked against. Never a session.
    pub grantee: Arc<str>,
    /// Pool that a worker token is bound to.
    pub pool: Option<Arc<str>>,
}

impl Caller {
    /// Returns the caller of open mode, which may use all routes but the internal ones.
    pub fn anybody() -> Self {
        Self::known_as("anybody", Roles::everything())
    }

    /// Returns the anonymous caller of a route that needs no token.
    pub fn anonymous() -> Self {
        Self::known_as("nobody", Roles::NONE)
    }

    /// Returns the tenant whose commands and executions the caller works on. `None` means all
    /// tenants.
    pub fn scope(&self) -> Option<Tenant> {
        (!self.roles.holds_any_of(Roles::INTERNAL)).then(|| self.tenant.clone())
    }

    /// Returns `true` if the caller may manage resources that all tenants share.
    pub fn looks_after_all(&self) -> bool {
        self.scope().is_none() || self.tenant == Tenant::default()
    }

    /// Returns the caller of a system pool, which presented the internal token.
    pub fn internal() -> Self {
        Self::known_as("internal", Roles::WORKER.and(Roles::INTERNAL))
    }

    /// Returns a caller of the default tenant that has no identity beyond this name.
    pub fn known_as(name: &str, roles: Roles) -> Self {
        let (tenant, name) = (Tenant::default(), Arc::<str>::from(name));
        let (actor, grantee) = (name.clone(), name.clone());
        Self { name, tenant, roles, acting: roles, actor, grantee, pool: None }
    }

    /// Returns `true` if audit records can distinguish the caller from others.
    pub fn has_identity(&self) -> bool {
        self.actor.contains(':') || self.roles.holds_any_of(Roles::INTERNAL)
    }

    /// Returns the identity that events and audit records name.
    pub fn identity(&self) -> Option<Arc<str>> {
        self.has_identity().then(|| self.actor.clone())
    }

    /// Returns the binding that limits the caller to commands it has leased, or `None` for admins,
    /// system pools, and callers that are not workers.
    pub fn binding(&self) -> Option<WorkerBinding> {
        let is_bound = self.roles.holds_any_of(Roles::WORKER)
            && !self.roles.holds_any_of(Roles::ADMIN.and(Roles::INTERNAL));
        is_bound.then(|| WorkerBinding { tenant: self.tenant.clone(), pool: self.pool.clone() })
    }
}

impl From<TokenHolder> for Caller {
    fn from(holder: TokenHolder) -> Self {
        let TokenHolder { id, name, tenant, role, pool, .. } = holder;
        let name = format!("{name} ({id})").into();
        let actor: Arc<str> = format!("token:{id}").into();
        let (roles, pool) = (Roles::for_role(role), pool.map(Into::into));
        let grantee = actor.clone();
        Self { name, tenant, roles, acting: roles, actor, grantee, pool }
    }
}

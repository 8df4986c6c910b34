//! Authentication of callers by the headers of their requests.

mod gateway;

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use noetl_model::Tenant;
use noetl_secrets::{Credentials, Secrets, Tokens};
use tokio::sync::Semaphore;

use crate::authorization;
use crate::caller::Caller;
use crate::error::AccessError;
use crate::options::{Auth, Options};
use crate::roles::{RequiredRole, Roles};
use crate::sessions::StoredSession;

pub use gateway::GATEWAYS;

/// Prefix of access tokens issued by this control plane.
const OWN: &str = "noetl_";

/// Header in which published clients repeat their token, and gateways name the session of a person.
pub const SESSION: &str = "x-session-token";

/// Maximum credential checks in flight. A check reads the store at most once, so this limit doesn't
/// delay authenticated callers.
const CHECKS_MAX: usize = 64;

/// Authentication of callers. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    options: Arc<Options>,
    tokens: Tokens,
    credentials: Credentials,
    /// Permits to check a credential.
    checks: Arc<Semaphore>,
}

impl Access {
    /// Creates the service. Tokens and the credential of the session database come from `secrets`.
    pub fn new(options: Options, secrets: &Secrets) -> Self {
        Self {
            options: Arc::new(options),
            tokens: secrets.tokens.clone(),
            credentials: secrets.credentials.clone(),
            checks: Arc::new(Semaphore::new(CHECKS_MAX)),
        }
    }

    /// Authenticates the caller by its headers and checks that it has a role that the route needs.
    ///
    /// # Errors
    ///
    /// Returns an error if the caller is unknown, if it lacks the role, or if the check is not
    /// possible.
    pub async fn caller(
        &self,
        headers: &HeaderMap,
        needs: RequiredRole,
    ) -> Result<Caller, AccessError> {
        if needs == RequiredRole::Nothing {
            return Ok(Caller::anonymous());
        }
        if needs == RequiredRole::One(Roles::INTERNAL) {
            return self.options.internal_token.check(headers).map(|()| Caller::internal());
        }
        let is_internal = self.options.internal_token.is_presented(headers);
        // The internal token allows every request of the worker role, for all tenants.
        if needs.allow(Roles::WORKER) && is_internal {
            return Ok(Caller::internal());
        }
        let caller = match &self.options.auth {
            Auth::Open => Caller::anybody(),
            _ if is_internal => Caller::internal(),
            Auth::Token | Auth::Oidc(_) => {
                let shown = shown(headers)?;
                let caller = self.identify(&shown).await?;
                check_role(&caller, needs)?;
                self.apply_session(headers, caller, &shown, needs).await?
            }
        };
        check_role(&caller, needs)?;
        let acting = caller.roles.shared_with(needs.roles());
        Ok(Caller { acting, ..caller })
    }

    /// Returns a valid session of the session database, or `None` if the session is unknown,
    /// expired, or inactive, or if there is no such database.
    ///
    /// # Errors
    ///
    /// Returns [`AccessError::Unavailable`] if the credential can't be read or the database is
    /// unavailable.
    pub async fn find_session(
        &self,
        caller: &Caller,
        token: &str,
    ) -> Result<Option<StoredSession>, AccessError> {
        match &self.options.sessions {
            Some(sessions) => sessions.find(&self.credentials, &self.checks, caller, token).await,
            None => Ok(None),
        }
    }

    /// Returns the holder of a token issued by this control plane or by the identity provider.
    async fn identify(&self, shown: &str) -> Result<Caller, AccessError> {
        let _check = self.checks.acquire().await.ok();
        match &self.options.auth {
            Auth::Oidc(provider) if !shown.starts_with(OWN) => Ok(provider.caller(shown).await?),
            _ => {
                let caller = self.by_token(shown).await?;
                caller.ok_or_else(|| {
                    AccessError::unknown_caller("the token is unknown, expired or revoked")
                })
            }
        }
    }

    /// Returns the holder of a token issued by this control plane, or `None` if the token is
    /// unknown, expired, or revoked.
    async fn by_token(&self, shown: &str) -> Result<Option<Caller>, AccessError> {
        Ok(self.tokens.holder(shown).await?.map(Caller::from))
    }
}

/// Checks that a caller has a role that the route needs, and that its tenant may use the route.
fn check_role(caller: &Caller, needs: RequiredRole) -> Result<(), AccessError> {
    if !needs.allow(caller.roles) {
        return Err(lacks_role(caller, needs));
    }
    if matches!(needs, RequiredRole::Whole(_)) && !caller.looks_after_all() {
        let message = format!(
            "this is about what all tenants share, and {} is of tenant '{}': a token of tenant \
             '{}' is needed",
            caller.name,
            caller.tenant.as_str(),
            Tenant::DEFAULT
        );
        return Err(AccessError::forbidden("default_tenant_needed", message));
    }
    Ok(())
}

/// Returns the token that a caller presents: in `Authorization`, or without it in [`SESSION`].
fn shown(headers: &HeaderMap) -> Result<Cow<'_, str>, AccessError> {
    if let Some(header) = headers.get(AUTHORIZATION) {
        return authorization::token(header).map_err(AccessError::unknown_caller);
    }
    let session = headers.get(SESSION).and_then(|value| value.to_str().ok()).map(str::trim);
    let shown = session.filter(|token| !token.is_empty());
    shown.map(Cow::Borrowed).ok_or_else(|| {
        AccessError::unknown_caller("a token is needed, as 'Authorization: Bearer <token>'")
    })
}

fn lacks_role(caller: &Caller, needs: RequiredRole) -> AccessError {
    let roles = |roles: Roles| roles.names().collect::<Vec<_>>().join(", ");
    let needed = roles(needs.roles());
    let has = match roles(caller.roles) {
        none if none.is_empty() => "none".to_owned(),
        some => some,
    };
    let message = format!("this needs one of the roles {needed}; {} has {has}", caller.name);
    AccessError::forbidden("role_missing", message)
}

//! User sessions forwarded by a gateway in the [`SESSION`] header, next to the gateway's own token.
//!
//! The gateway's token authenticates the request; the session can only narrow it or name its actor.
//! The header is untrusted input: a gateway forwards it as the browser sent it. Only tokens of role
//! `operator` or `admin` act for sessions; from other callers the header has no effect.
//!
//! - If the header contains a token of this control plane, the request acts as its holder, with the
//!   permissions that both tokens have.
//! - A session of the database that `NOETL_SESSION_CREDENTIAL` names is recorded next to the token
//!   that acts for it; roles, tenant, and grants stay those of the token.
//! - Without that setting, and from callers outside the default tenant, other text has no effect,
//!   because nothing could verify it.

use http::HeaderMap;

use super::{Access, OWN, SESSION, check_role};
use crate::caller::Caller;
use crate::error::AccessError;
use crate::roles::{RequiredRole, Roles};
use crate::sessions::Sessions;

/// Roles of callers that may act for sessions.
pub const GATEWAYS: Roles = Roles::OPERATOR.and(Roles::ADMIN);

impl Access {
    /// Returns the caller, narrowed or named by the session of its request.
    pub(super) async fn apply_session(
        &self,
        headers: &HeaderMap,
        caller: Caller,
        token: &str,
        needs: RequiredRole,
    ) -> Result<Caller, AccessError> {
        if !caller.roles.holds_any_of(GATEWAYS) {
            return Ok(caller);
        }
        let Some(session) = presented(headers)? else { return Ok(caller) };
        // Published clients repeat their own token in this header.
        if session == token {
            return Ok(caller);
        }
        if session.starts_with(OWN) {
            let holder = {
                let _check = self.checks.acquire().await.ok();
                self.by_token(session).await?.ok_or_else(unknown)?
            };
            return narrow(&caller, holder, needs);
        }
        let sessions = self.options.sessions.as_ref().filter(|_| Sessions::serves(&caller));
        let Some(sessions) = sessions else { return Ok(caller) };
        let found = self.find_session(&caller, session).await?.ok_or_else(unknown)?;
        let actor = sessions.actor(&found, &caller.actor);
        Ok(Caller { actor, ..caller })
    }
}

/// Returns the session in the headers. Rejects more than one session header.
fn presented(headers: &HeaderMap) -> Result<Option<&str>, AccessError> {
    let mut all = headers.get_all(SESSION).iter();
    let Some(first) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(refuse_session("send one x-session-token header, not several"));
    }
    let text = first.to_str().map_err(|_| refuse_session("x-session-token must be ASCII text"))?;
    Ok(Some(text.trim()).filter(|text| !text.is_empty()))
}

/// Returns the session's holder, limited to the permissions of the gateway that acts for it.
fn narrow(gateway: &Caller, holder: Caller, needs: RequiredRole) -> Result<Caller, AccessError> {
    if holder.tenant != gateway.tenant {
        let message = "the session in x-session-token and the token in Authorization belong to \
                       different tenants";
        return Err(AccessError::forbidden("session_of_other_tenant", message));
    }
    check_role(&holder, needs)?;
    let is_admin = holder.roles.holds_any_of(Roles::ADMIN);
    let roles = if is_admin { gateway.roles } else { holder.roles };
    Ok(Caller { roles, ..holder })
}

fn unknown() -> AccessError {
    refuse_session("the session in x-session-token is unknown, expired, or revoked")
}

/// Creates the rejection of a session that names no actor.
fn refuse_session(message: &str) -> AccessError {
    AccessError::Unauthenticated { code: "session_unknown", message: message.to_owned() }
}

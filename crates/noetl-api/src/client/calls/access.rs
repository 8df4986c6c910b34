//! Calls for sign-in codes, grants, and the audit log.

use noetl_model::Timestamp;

use crate::client::ApiCall;
use crate::credentials::SecretAuditReply;
use crate::grants::{GrantList, GrantRemoved, GrantView, NewGrantView};
use crate::session::IssuedCode;

/// Creates a one-time code that signs a browser in.
pub fn create_code() -> ApiCall<IssuedCode> {
    ApiCall::post(["api", "auth", "codes"], &serde_json::json!({}))
}

/// Creates a grant. The first grant of a role or credential limits it to its grants.
pub fn create_grant(request: &NewGrantView) -> ApiCall<GrantView> {
    ApiCall::post(["api", "grants"], request)
}

/// Returns the grants of the caller's tenant.
pub fn grants() -> ApiCall<GrantList> {
    ApiCall::get(["api", "grants"])
}

/// Removes a grant by its ID. The server responds with 404 if the tenant has no such grant.
pub fn remove_grant(id: &str) -> ApiCall<GrantRemoved> {
    ApiCall::delete(["api", "grants", id])
}

/// Returns up to `limit` audit records in the inclusive range `from` to `to`, latest first.
pub fn audit_between(
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    limit: usize,
) -> ApiCall<SecretAuditReply> {
    ApiCall::get(["api", "internal", "secret-audit"])
        .with("from", from)
        .with("to", to)
        .with("limit", Some(limit))
}

//! Route that lists the audit log of secrets.

use noetl_api::Id;
use noetl_api::credentials::{SecretAuditReply, SecretAuditRow};
use noetl_model::Timestamp;
use noetl_store::{AuditFilter, SecretUse};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Query};
use crate::http::openapi::ErrorResponses;

const LIMIT: usize = 100;
const LIMIT_MAX: usize = 10_000;

/// Filters of the secret audit.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Return only records of this credential.
    #[serde(default)]
    credential: Option<String>,
    /// Return only records of this execution.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    execution_id: Option<Id>,
    /// Return only records at or after this time.
    #[serde(default)]
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Return only records up to this time.
    #[serde(default)]
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
    /// Maximum records to return, up to 10,000. Default: 100.
    #[serde(default)]
    limit: Option<usize>,
}

/// Lists requests for secrets
///
/// Returns allowed and denied requests, newest first.
#[utoipa::path(
    get,
    path = "/api/internal/secret-audit",
    operation_id = "secret_audit",
    tag = "credentials",
    params(AuditQuery),
    responses((status = 200, body = SecretAuditReply), ErrorResponses),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    Query(query): Query<AuditQuery>,
) -> Result<Json<SecretAuditReply>, ApiError> {
    let filter = AuditFilter {
        credential: query.credential,
        execution: query.execution_id.map(Into::into),
        from: query.from,
        to: query.to,
        limit: query.limit.unwrap_or(LIMIT).min(LIMIT_MAX),
    };
    let uses = app.control.secrets.audit.list(&app.tenant, &filter).await?;
    Ok(Json(SecretAuditReply { rows: uses.into_iter().map(row).collect() }))
}

fn row(used: SecretUse) -> SecretAuditRow {
    SecretAuditRow {
        audit_id: Id::text(used.id.get()),
        occurred_at: used.at,
        credential: used.credential,
        operation: used.operation,
        outcome: used.outcome,
        worker_id: used.worker,
        execution_id: used.execution.map(|id| Id::text(id.get())),
        parent_execution_id: used.parent.map(|id| Id::text(id.get())),
        kek_version: used.key_version,
        notes: used.notes,
    }
}

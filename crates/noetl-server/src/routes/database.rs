//! Access to the control plane's database, for operators.

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_api::database::{SchemaReply, SqlReply, SqlRequest};
use noetl_store::Sql;

use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::Json;
use crate::http::openapi::ErrorResponses;

/// Tables that published clients expect.
const KNOWN: [&str; 8] =
    ["catalog", "command", "credential", "event", "keychain", "runtime", "schedule", "transient"];

/// Runs a SQL statement on the control plane's database
///
/// Requires a Postgres store. The statement runs on a separate connection, for at most 30 seconds,
/// with all privileges of the server.
#[utoipa::path(
    post,
    path = "/api/postgres/execute",
    operation_id = "postgres_execute",
    tag = "health",
    request_body = SqlRequest,
    responses(
        (status = 200, body = SqlReply),
        (status = 501, body = noetl_api::ErrorBody, description = "The store is not Postgres"),
        ErrorResponses,
    ),
)]
pub(crate) async fn execute(
    Scoped(app): Scoped,
    Json(request): Json<SqlRequest>,
) -> Result<Json<SqlReply>, ApiError> {
    let sql = Sql {
        text: statement(&request)?,
        parameters: request.parameters.unwrap_or_default(),
        schema: request.schema.filter(|schema| !schema.is_empty()),
    };
    let result = app.control.views.overview.run_sql(&sql).await?;
    Ok(Json(SqlReply { status: "ok".to_owned(), result }))
}

/// Checks that the schema exists
///
/// The server migrates the schema at startup, so this request changes nothing.
#[utoipa::path(
    post,
    path = "/api/db/init",
    operation_id = "db_init",
    tag = "health",
    responses((status = 200, body = SchemaReply), ErrorResponses),
)]
pub(crate) async fn init(Scoped(app): Scoped) -> Result<Json<SchemaReply>, ApiError> {
    let found = inspect(&app).await?;
    Ok(Json(SchemaReply { tables: None, missing: None, ..found }))
}

/// Lists existing and missing tables
#[utoipa::path(
    get,
    path = "/api/db/validate",
    operation_id = "db_validate",
    tag = "health",
    responses((status = 200, body = SchemaReply), ErrorResponses),
)]
pub(crate) async fn validate(Scoped(app): Scoped) -> Result<Json<SchemaReply>, ApiError> {
    inspect(&app).await.map(Json)
}

async fn inspect(app: &App) -> Result<SchemaReply, ApiError> {
    let tables = app.control.views.overview.tables().await?;
    let is_missing = |name: &&str| !tables.iter().any(|table| table == name);
    // A store without a database has no tables.
    let missing: Vec<String> = match tables.is_empty() {
        true => Vec::new(),
        false => KNOWN.into_iter().filter(is_missing).map(str::to_owned).collect(),
    };
    let (status, message) = match missing.is_empty() {
        true => ("ok", "the schema is there and up to date".to_owned()),
        false => ("error", format!("tables are missing: {}", missing.join(", "))),
    };
    Ok(SchemaReply {
        status: status.to_owned(),
        message,
        valid: missing.is_empty(),
        tables: Some(tables),
        missing: Some(missing),
    })
}

/// Returns the statement from the first non-empty field of the request.
fn statement(request: &SqlRequest) -> Result<String, ApiError> {
    let given = |text: &Option<String>| {
        text.as_ref().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    if let Some(query) = given(&request.query) {
        return Ok(query);
    }
    if let Some(encoded) = given(&request.query_base64) {
        let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        return decoded.filter(|text| !text.contains('\0')).ok_or_else(|| {
            ApiError::invalid("invalid_query", "query_base64 must be text in base64")
        });
    }
    if let Some(procedure) = given(&request.procedure) {
        let is_call = procedure.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("call "));
        return Ok(if is_call { procedure } else { format!("call {procedure}") });
    }
    let message = "say what to run: query, query_base64 or procedure";
    Err(ApiError::with_status(StatusCode::UNPROCESSABLE_ENTITY, "no_statement", message))
}

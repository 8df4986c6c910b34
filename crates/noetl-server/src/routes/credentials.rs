//! Credentials: keeping, listing, reading, removing.

use noetl_api::Id;
use noetl_api::credentials::{
    CredentialDeleted, CredentialFilterView, CredentialList, CredentialView, PutCredential,
};
use noetl_control::{CredentialRequest, Credentials};
use noetl_store::{Credential, CredentialFilter};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::document::Failures;
use crate::http::extract::{Json, Path, Query};

/// What `GET /api/credentials/{identifier}` can be asked.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CredentialQuery {
    /// Whether what is secret is shown.
    #[serde(default)]
    include_data: bool,
}

/// Keep a credential
///
/// One that has the name is replaced, all of it but its id. What is secret is not shown again.
#[utoipa::path(
    post,
    path = "/api/credentials",
    tag = "credentials",
    request_body = PutCredential,
    responses((status = 200, body = CredentialView), Failures),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    Json(request): Json<PutCredential>,
) -> Result<Json<CredentialView>, ApiError> {
    let request = CredentialRequest {
        name: request.name,
        kind: request.kind,
        data: request.data,
        meta: request.meta,
        tags: request.tags.unwrap_or_default(),
        description: request.description,
    };
    let warnings = Credentials::warnings(&request.data);
    let kept = app.control.credentials.put(&app.tenant, request).await?;
    Ok(Json(CredentialView { warnings, ..view(kept) }))
}

/// List credentials
///
/// Of one type, or with a text in their name or description, when that is asked for.
#[utoipa::path(
    get,
    path = "/api/credentials",
    operation_id = "credentials_list",
    tag = "credentials",
    params(CredentialFilterView),
    responses((status = 200, body = CredentialList), Failures),
)]
pub(crate) async fn list(
    Scoped(app): Scoped,
    Query(asked): Query<CredentialFilterView>,
) -> Result<Json<CredentialList>, ApiError> {
    let filter = CredentialFilter { kind: asked.kind.clone(), text: asked.q.clone() };
    let items = app.control.credentials.list(&app.tenant, &filter).await?;
    let filter = (asked != CredentialFilterView::default()).then_some(asked);
    Ok(Json(CredentialList { items: items.into_iter().map(view).collect(), filter }))
}

/// Read a credential
///
/// By id, else by name; with what is secret when `include_data` is given.
#[utoipa::path(
    get,
    path = "/api/credentials/{identifier}",
    operation_id = "credentials_get",
    tag = "credentials",
    params(("identifier" = String, Path), CredentialQuery),
    responses((status = 200, body = CredentialView), Failures),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(identifier): Path<String>,
    Query(query): Query<CredentialQuery>,
) -> Result<Json<CredentialView>, ApiError> {
    let credentials = &app.control.credentials;
    let found = credentials.get(&app.tenant, &identifier).await?;
    let data = query.include_data.then(|| credentials.open(&app.tenant, &found)).transpose()?;
    Ok(Json(CredentialView { data, ..view(found) }))
}

/// Remove a credential
#[utoipa::path(
    delete,
    path = "/api/credentials/{identifier}",
    tag = "credentials",
    params(("identifier" = String, Path)),
    responses((status = 200, body = CredentialDeleted), Failures),
)]
pub(crate) async fn delete(
    Scoped(app): Scoped,
    Path(identifier): Path<String>,
) -> Result<Json<CredentialDeleted>, ApiError> {
    let id = app.control.credentials.delete(&app.tenant, &identifier).await?;
    let message = "Credential deleted successfully".to_owned();
    Ok(Json(CredentialDeleted { message, id: Id::text(id.get()) }))
}

fn view(credential: Credential) -> CredentialView {
    let Credential { kept, created_at, updated_at } = credential;
    CredentialView {
        id: Id::text(kept.id.get()),
        name: kept.name,
        kind: kept.kind,
        meta: kept.meta,
        tags: (!kept.tags.is_empty()).then_some(kept.tags),
        description: kept.description,
        created_at,
        updated_at,
        data: None,
        warnings: Vec::new(),
    }
}

//! Input form of a document.

use axum::http::Uri;
use noetl_api::Version;
use noetl_api::catalog::{UiForm, UiFormField};
use noetl_playbook::UiField;
use serde::Deserialize;
use utoipa::IntoParams;

use super::missing;
use crate::error::ApiError;
use crate::http::caller::Scoped;
use crate::http::extract::{Json, Path, Query};
use crate::http::openapi::ErrorResponses;
use crate::routes::fallback::unknown_path;

/// Suffix of the route. A document's path may contain slashes, so the route pattern cannot include
/// the suffix.
const TAIL: &str = "/ui_schema";

/// Query parameters of the input form.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FormQuery {
    /// Version number, or `latest`. Default: `latest`.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    version: Version,
}

/// Returns the input form of a document
///
/// The form has one field per key of `workload`. Comments on the line of a key refine its field: `#
/// ui:secret`, `# ui:enum=[a, b]`, `# ui:credential=glob`, `# ui:description=…`.
#[utoipa::path(
    get,
    path = "/api/catalog/{*path}",
    operation_id = "catalog_ui_schema",
    tag = "catalog",
    params(("path" = String, Path, description = "The document's path; it may hold slashes"), FormQuery),
    responses((status = 200, body = UiForm), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(path): Path<String>,
    Query(query): Query<FormQuery>,
    uri: Uri,
) -> Result<Json<UiForm>, ApiError> {
    let Some(path) = path.strip_suffix(TAIL) else { return Err(unknown_path(uri).await) };
    let catalog = &app.control.catalog;
    let found = catalog.entry_at(&app.tenant, path, query.version.number()).await?;
    let entry = found.ok_or_else(|| missing(path))?;
    let form = catalog.form(&entry).await?;
    Ok(Json(UiForm {
        path: entry.path,
        version: entry.version,
        kind: entry.kind,
        title: form.title,
        description_markdown: form.description,
        exposed_in_ui: form.is_exposed,
        fields: form.fields.into_iter().map(field).collect(),
        generated_at: app.control.now(),
    }))
}

fn field(field: UiField) -> UiFormField {
    UiFormField {
        name: field.name,
        kind: field.kind.to_owned(),
        default: field.default,
        description: field.description,
        secret: field.secret,
        credential_glob: field.credential_glob,
        options: field.options,
        children: field.children.map(|children| children.into_iter().map(self::field).collect()),
    }
}

//! Routes that read, store, and delete playbook test suites.

use noetl_api::objects::{PutSuite, SuiteDeleted, SuiteView};
use noetl_results::Suite;

use crate::app::App;
use crate::error::ApiError;
use crate::http::caller::{Caller, Scoped};
use crate::http::extract::{Json, Path};
use crate::http::granted;
use crate::http::openapi::ErrorResponses;

/// Reads a test suite
#[utoipa::path(
    get,
    path = "/api/playbook-tests/suites/{*id}",
    operation_id = "suites_get",
    tag = "catalog",
    params(("id" = String, Path, description = "It may hold slashes")),
    responses((status = 200, body = SuiteView), ErrorResponses),
)]
pub(crate) async fn get(
    Scoped(app): Scoped,
    Path(id): Path<String>,
) -> Result<Json<SuiteView>, ApiError> {
    let suite = app.control.data.objects.suite(&app.tenant, &id).await?;
    Ok(Json(view(id, suite)))
}

/// Stores a test suite
///
/// Replaces a suite with the same ID.
#[utoipa::path(
    put,
    path = "/api/playbook-tests/suites/{*id}",
    operation_id = "suites_put",
    tag = "catalog",
    params(("id" = String, Path, description = "It may hold slashes")),
    request_body = PutSuite,
    responses((status = 200, body = SuiteView), ErrorResponses),
)]
pub(crate) async fn put(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<PutSuite>,
) -> Result<Json<SuiteView>, ApiError> {
    granted::check_path(&app, &caller, &id).await?;
    let suite = Suite {
        playbook_path: request.playbook_path,
        tests: request.tests,
        metadata: request.metadata,
        updated_at: app.control.now(),
    };
    let App { control, tenant, .. } = &app;
    let suite = control.data.objects.put_suite(tenant, &id, suite).await?;
    Ok(Json(view(id, suite)))
}

/// Deletes a test suite
#[utoipa::path(
    delete,
    path = "/api/playbook-tests/suites/{*id}",
    operation_id = "suites_delete",
    tag = "catalog",
    params(("id" = String, Path, description = "It may hold slashes")),
    responses((status = 200, body = SuiteDeleted), ErrorResponses),
)]
pub(crate) async fn delete(
    Scoped(app): Scoped,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SuiteDeleted>, ApiError> {
    granted::check_path(&app, &caller, &id).await?;
    app.control.data.objects.delete_suite(&app.tenant, &id).await?;
    Ok(Json(SuiteDeleted { suite_id: id, status: "deleted".to_owned() }))
}

fn view(id: String, suite: Suite) -> SuiteView {
    SuiteView {
        file_path: format!("playbook-tests/{id}.json"),
        suite_id: id,
        playbook_path: suite.playbook_path,
        tests: suite.tests,
        metadata: suite.metadata,
        updated_at: suite.updated_at,
    }
}

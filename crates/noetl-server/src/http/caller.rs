//! Tenant scope of a caller's request.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
pub(crate) use noetl_access::Caller;
use noetl_model::ExecutionId;

use crate::app::App;
use crate::error::ApiError;

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

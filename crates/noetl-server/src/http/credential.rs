//! The credential of a request whose response goes on for as long as it may.
//!
//! A stream is let through once and lasts for hours. Its credential is checked again every
//! [`EVERY`], by the same rules as at the start, so a token that was revoked or expired, an internal
//! token that was replaced, or a role that was taken away ends it.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::info;

use super::authorize::{SESSION, caller};
use super::roles::Needs;
use crate::app::App;
use crate::connections::Connection;

/// Time between two checks. With the time for which the answer of the store about a token is
/// believed, it has to stay below ten seconds, which is the promise.
const EVERY: Duration = Duration::from_secs(2);
/// Time after which the connection of a reader is closed that does not read the end of its stream.
const UNREAD: Duration = Duration::from_secs(1);

const _: () = assert!(
    EVERY.as_secs() + UNREAD.as_secs() + noetl_control::TOKEN_BELIEVED.as_secs() < 10,
    "a revoked token ends its streams within ten seconds"
);

/// Credential of a request, as its headers show it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credential {
    headers: HeaderMap,
    needs: Option<Needs>,
    connection: Option<Connection>,
}

impl Credential {
    /// Returns the credential that let this request through.
    pub(super) fn new(request: &Parts, needs: Needs) -> Self {
        let mut headers = HeaderMap::new();
        for name in [AUTHORIZATION.as_str(), SESSION] {
            if let Some(shown) = request.headers.get(name) {
                headers.insert(name, shown.clone());
            }
        }
        let connection = request.extensions.get::<Connection>().cloned();
        Self { headers, needs: Some(needs), connection }
    }

    /// Checks the credential until the guard is dropped or it counts no more; the token is
    /// cancelled then. A reader that does not take the end of its stream loses its connection.
    pub(crate) fn watch(self, app: &App) -> (CancellationToken, DropGuard) {
        let (ended, watching) = (CancellationToken::new(), CancellationToken::new());
        let (app, told) = (app.clone(), ended.clone());
        let stopped = watching.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => return,
                () = self.until_refused(&app) => told.cancel(),
            }
            tokio::select! {
                () = stopped.cancelled() => {}
                () = tokio::time::sleep(UNREAD) => {
                    if let Some(connection) = &self.connection {
                        connection.close();
                    }
                }
            }
        });
        (ended, watching.drop_guard())
    }

    /// Resolves when the credential is refused. A store or provider that is unavailable refuses
    /// nothing.
    async fn until_refused(&self, app: &App) {
        let Some(needs) = self.needs else { return std::future::pending().await };
        loop {
            tokio::time::sleep(EVERY).await;
            match caller(app, &self.headers, needs).await {
                Ok(caller) if caller.scope().is_none() || caller.tenant == app.tenant => {}
                Err(refusal) if !is_final(refusal.status()) => {}
                Ok(_) | Err(_) => {
                    info!(tenant = app.tenant.as_str(), "stream ended, its token counts no more");
                    return;
                }
            }
        }
    }
}

fn is_final(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

impl FromRequestParts<App> for Credential {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

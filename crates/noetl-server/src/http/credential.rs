//! Credential of a streaming request, checked for as long as the stream is open.
//!
//! A stream can last for hours. Its credential is checked every [`EVERY`] by the same rules as at
//! the start, so the stream ends when its token is revoked or expires, the internal token is
//! replaced, or the caller loses the role.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use noetl_access::SESSION;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::info;

use super::roles::RequiredRole;
use crate::app::App;
use crate::connections::ClientConnection;
use crate::error::ApiError;

/// Interval between checks. Together with the time for which token lookups are cached, it must stay
/// below the promised 10 seconds.
const EVERY: Duration = Duration::from_secs(2);
/// Time that a client has to read the end of its stream before the server closes the connection.
const UNREAD: Duration = Duration::from_secs(1);

const _: () = assert!(
    EVERY.as_secs() + UNREAD.as_secs() + noetl_secrets::TOKEN_BELIEVED.as_secs() < 10,
    "a revoked token ends its streams within ten seconds"
);

/// Credential headers of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestCredential {
    headers: HeaderMap,
    needs: Option<RequiredRole>,
    connection: Option<ClientConnection>,
}

impl RequestCredential {
    /// Copies the credential headers of an authorized request.
    pub(super) fn new(request: &Parts, needs: RequiredRole) -> Self {
        let mut headers = HeaderMap::new();
        for name in [AUTHORIZATION.as_str(), SESSION] {
            if let Some(shown) = request.headers.get(name) {
                headers.insert(name, shown.clone());
            }
        }
        let connection = request.extensions.get::<ClientConnection>().cloned();
        Self { headers, needs: Some(needs), connection }
    }

    /// Checks the credential until the guard is dropped, and cancels the returned token when the
    /// credential is rejected. If the client doesn't read the end of its stream within [`UNREAD`],
    /// the server closes the connection.
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

    /// Resolves when the credential is rejected. An unavailable store or identity provider doesn't
    /// end the stream.
    async fn until_refused(&self, app: &App) {
        let Some(needs) = self.needs else { return std::future::pending().await };
        loop {
            tokio::time::sleep(EVERY).await;
            match app.access.caller(&self.headers, needs).await.map_err(ApiError::from) {
                Ok(caller) if caller.scope().is_none() || caller.tenant == app.tenant => {}
                Err(refusal) if !is_final(refusal.status()) => {}
                Ok(_) | Err(_) => {
                    info!(tenant = app.tenant.as_str(), "stream ended, credential no longer valid");
                    return;
                }
            }
        }
    }
}

fn is_final(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

impl FromRequestParts<App> for RequestCredential {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

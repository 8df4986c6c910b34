//! Answers requests until told to stop.

use std::future::Future;
use std::io;

use tokio::net::TcpListener;

use crate::app::App;
use crate::router::router;

/// Serves on `listener` until `shutdown` resolves. Requests under way are answered before this
/// returns; no new ones are taken.
pub async fn serve(
    listener: TcpListener,
    app: App,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = app.stopping.clone();
    let shutdown = async move {
        shutdown.await;
        stopping.cancel();
    };
    axum::serve(listener, router(app)).with_graceful_shutdown(shutdown).await
}

//! Accepts connections and serves requests until shutdown.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tracing::warn;

use crate::app::App;
use crate::connections::{Connections, Routed};
use crate::router::router;
use crate::tls::Tls;

/// Timeout of the TLS handshake.
const PATIENCE: Duration = Duration::from_secs(15);
/// Pause after a failed accept. The likely cause is a lack of file descriptors, and an immediate
/// retry would only use CPU time.
const REST: Duration = Duration::from_millis(200);

/// Serves on `listener` until `shutdown` resolves. Accepts no new requests after that, and
/// completes the requests in flight before it returns.
pub async fn serve(
    listener: TcpListener,
    app: App,
    tls: Option<Tls>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopping, silence) = (app.stopping.clone(), app.options.silence);
    let worker_connections = app.worker_connections.clone();
    let connections = Connections::new(app.options.connections_max);
    let router = router(app);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "failed to accept connection");
                    tokio::time::sleep(REST).await;
                    continue;
                }
            },
            () = &mut shutdown => break,
        };
        let seat = tokio::select! {
            seat = connections.seat(peer.ip().to_canonical()) => seat,
            () = &mut shutdown => break,
        };
        let Some(seat) = seat else { break };
        // Responses are small, and clients wait for them.
        let _ = stream.set_nodelay(true);
        let seat = Arc::new(seat);
        let routed = Routed { router: router.clone(), seat: seat.clone() };
        let service = TowerToHyperService::new(routed);
        let (watcher, tls) = (graceful.watcher(), tls.clone());
        tokio::spawn(async move {
            let answered = async {
                match tls {
                    None => answer(stream, service, watcher, silence).await,
                    Some(tls) => {
                        let agreed = tls.acceptor.accept(stream);
                        if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, agreed).await {
                            answer(stream, service, watcher, silence).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = answered => {}
                () = seat.connection.closing() => {}
                // hyper waits for the first bytes of a connection that can be upgraded without a limit.
                () = seat.connection.unused(silence) => {}
            }
        });
    }
    drop(listener);
    stopping.cancel();
    graceful.shutdown().await;
    // Each ends by itself once the server is stopping.
    worker_connections.close();
    worker_connections.wait().await;
    Ok(())
}

/// Serves the requests of one connection.
async fn answer<S>(
    stream: S,
    service: TowerToHyperService<Routed>,
    watcher: Watcher,
    silence: Duration,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // The time limit of headers applies from the first byte on.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(silence);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    // Errors of a connection concern only its client.
    let _ = watcher.watch(connection.into_owned()).await;
}

//! Answers requests until told to stop.

use std::future::Future;
use std::io;
use std::pin::pin;
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

/// How long a client may take to agree on how to talk.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long to rest when a connection cannot be taken: most likely there are no more files to be
/// had, and asking at once again would only burn time.
const REST: Duration = Duration::from_millis(200);

/// Serves on `listener` until `shutdown` resolves. Requests under way are answered before this
/// returns; no new ones are taken.
pub async fn serve(
    listener: TcpListener,
    app: App,
    tls: Option<Tls>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stopping, silence) = (app.stopping.clone(), app.options.silence);
    let connections = Connections::new(app.options.connections_max);
    let router = router(app);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "a connection could not be taken");
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
        // Answers are small and waited for.
        let _ = stream.set_nodelay(true);
        let routed = Routed { router: router.clone(), connection: seat.connection.clone() };
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
            }
        });
    }
    drop(listener);
    stopping.cancel();
    graceful.shutdown().await;
    Ok(())
}

/// Answers the requests of one connection.
async fn answer<S>(
    stream: S,
    service: TowerToHyperService<Routed>,
    watcher: Watcher,
    silence: Duration,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Told at once that it is HTTP/1: to find out would wait for a first byte without any limit.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(silence);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // How a connection ends is its client's affair.
    let _ = watcher.watch(connection.into_owned()).await;
}

//! Limit on open connections.
//!
//! Clients that connect and send nothing, or send very slowly, must not block other clients. At the
//! limit, a new connection replaces the oldest one that has no request in flight and never made an
//! authenticated request. Connections of authenticated callers stay open.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// Time that a new connection waits for a permit before the server closes another idle one.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Connections of one listener. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    room: Arc<Semaphore>,
    open: Arc<Mutex<Open>>,
}

/// Open connections by their number, oldest first.
#[derive(Default)]
struct Open {
    last: u64,
    connections: BTreeMap<u64, ClientConnection>,
}

/// A connection as its requests see it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ClientConnection(Arc<ConnectionInner>);

#[derive(Debug)]
struct ConnectionInner {
    /// Address of the other end.
    peer: IpAddr,
    /// Whether an authenticated caller made a request.
    is_known: AtomicBool,
    /// Whether a request is in flight.
    is_busy: AtomicBool,
    /// Whether a request has arrived.
    is_used: AtomicBool,
    closing: CancellationToken,
}

/// Permit for one connection, released when dropped. A request that upgrades the connection retains
/// it.
pub(crate) struct Seat {
    pub(crate) connection: ClientConnection,
    number: u64,
    connections: Connections,
    _room: OwnedSemaphorePermit,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Self {
        let room = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Self { room, open: Arc::default() }
    }

    /// Waits for a permit for a connection from `peer`, closing an idle connection if all permits
    /// are in use. Returns `None` only if the semaphore is closed.
    pub(crate) async fn seat(&self, peer: IpAddr) -> Option<Seat> {
        let mut room = self.room.clone().try_acquire_owned().ok();
        while room.is_none() {
            self.close_idle();
            // All connections may have a request in flight now, and one may become idle soon.
            let freed = tokio::time::timeout(LOOK_AGAIN, self.room.clone().acquire_owned()).await;
            room = freed.ok().transpose().ok()?;
        }
        let room = room?;
        let connection = ClientConnection(Arc::new(ConnectionInner {
            peer,
            is_known: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            is_used: AtomicBool::new(false),
            closing: CancellationToken::new(),
        }));
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.connections.insert(number, connection.clone());
        drop(open);
        Some(Seat { connection, number, connections: self.clone(), _room: room })
    }

    /// Closes the oldest idle connection that never made an authenticated request.
    fn close_idle(&self) {
        let open = self.open();
        if let Some(oldest) = open.connections.values().find(|connection| connection.is_idle()) {
            oldest.close();
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Each entry is written in one operation, so the map is consistent even if the lock is
        // poisoned.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.connections.open().connections.remove(&self.number);
    }
}

impl ClientConnection {
    /// Returns the address of the other end.
    pub(crate) fn peer(&self) -> IpAddr {
        self.0.peer
    }

    /// Records that an authenticated caller made a request.
    pub(crate) fn set_known(&self) {
        self.0.is_known.store(true, Ordering::Relaxed);
    }

    /// Closes the connection, even with a response in flight.
    pub(crate) fn close(&self) {
        self.0.closing.cancel();
    }

    /// Waits until the server decides to close the connection.
    pub(crate) async fn closing(&self) {
        self.0.closing.cancelled().await;
    }

    /// Resolves after `limit` if no request has arrived by then.
    pub(crate) async fn unused(&self, limit: Duration) {
        tokio::time::sleep(limit).await;
        if self.0.is_used.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }

    fn is_idle(&self) -> bool {
        let ConnectionInner { is_known, is_busy, closing, .. } = &*self.0;
        !is_known.load(Ordering::Relaxed)
            && !is_busy.load(Ordering::Relaxed)
            && !closing.is_cancelled()
    }
}

/// Router of one connection: adds the [`ClientConnection`] and the [`Seat`] to each request.
#[derive(Clone)]
pub(crate) struct Routed {
    pub(crate) router: Router,
    pub(crate) seat: Arc<Seat>,
}

impl<B> Service<Request<B>> for Routed
where
    Router: Service<Request<B>, Response = Response>,
    <Router as Service<Request<B>>>::Future: Send + 'static,
{
    type Response = Response;
    type Error = <Router as Service<Request<B>>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.router.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let connection = self.seat.connection.clone();
        connection.0.is_busy.store(true, Ordering::Relaxed);
        connection.0.is_used.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(connection.clone());
        request.extensions_mut().insert(self.seat.clone());
        let answer = self.router.call(request);
        Box::pin(async move {
            let answer = answer.await;
            connection.0.is_busy.store(false, Ordering::Relaxed);
            answer
        })
    }
}

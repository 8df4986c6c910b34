//! Keeps a connection to NATS, replacing it whenever it is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Auth, AuthError, Client, ConnectError, ConnectOptions, Event};
use noetl_model::ExponentialBackoff;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::address::{Address, NatsCredentials};

/// Time a server has to respond to any request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of pings on an idle connection. Two unanswered pings end the connection.
const PING_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of published messages without an ack. Further publishers wait.
const IN_FLIGHT_MAX: usize = 8192;

/// Delays before the next connection attempt: the first after a lost connection, later ones after
/// failed attempts.
const RETRY: ExponentialBackoff =
    ExponentialBackoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// An established connection with its JetStream context.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) context: Context,
    gone: Arc<Notify>,
}

impl Session {
    /// Reports that the server did not respond in time. The connection is replaced.
    pub(crate) fn doubt(&self) {
        self.gone.notify_one();
    }
}

/// The current connection and the handle of the task that maintains it.
pub(crate) struct NatsConnection {
    session: watch::Receiver<Option<Session>>,
    closing: CancellationToken,
}

impl NatsConnection {
    /// Starts the task that connects and reconnects until this value is dropped.
    pub(crate) fn open(address: Address) -> Self {
        let (sender, session) = watch::channel(None);
        let closing = CancellationToken::new();
        let keeper = Reconnector { address, session: sender, closing: closing.clone() };
        tokio::spawn(keeper.run());
        Self { session, closing }
    }

    /// Returns the current connection, or `None` while disconnected.
    pub(crate) fn session(&self) -> Option<Session> {
        self.session.borrow().clone()
    }

    /// Waits until there is no connection.
    pub(crate) async fn lost(&self) {
        let mut session = self.session.clone();
        // An error means that the connecting task has ended, so there is no connection either.
        let _ = session.wait_for(Option::is_none).await;
    }

    pub(crate) fn is_there(&self) -> bool {
        self.session.borrow().is_some()
    }

    /// Waits until there is a connection.
    pub(crate) async fn there(&self) {
        let mut session = self.session.clone();
        if session.wait_for(Option::is_some).await.is_err() {
            // The connecting task has ended, so there will never be a connection.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for NatsConnection {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

struct Reconnector {
    address: Address,
    session: watch::Sender<Option<Session>>,
    closing: CancellationToken,
}

impl Reconnector {
    async fn run(self) {
        let closing = self.closing.clone();
        tokio::select! {
            () = self.keep() => {}
            () = closing.cancelled() => {}
        }
        self.session.send_replace(None);
    }

    async fn keep(&self) {
        let mut failed: u32 = 0;
        loop {
            let gone = Arc::new(Notify::new());
            match connect(&self.address, gone.clone()).await {
                Ok(session) => {
                    info!(servers = %self.address, "connected to NATS");
                    warn_of_version(&session.client.server_info().version);
                    failed = 0;
                    self.session.send_replace(Some(session));
                    gone.notified().await;
                    self.session.send_replace(None);
                    warn!(servers = %self.address, "NATS connection lost, reconnecting");
                }
                Err(error) => {
                    if failed == 0 {
                        warn!(servers = %self.address, %error, "NATS connection failed, retrying");
                    }
                    failed = failed.saturating_add(1);
                }
            }
            tokio::time::sleep(delay(failed)).await;
        }
    }
}

/// First server version that preserves streams across restarts and crashes.
const VERSION_MIN: (u64, u64, u64) = (2, 12, 3);

/// Warns once per process about a server version that is known to lose streams.
fn warn_of_version(version: &str) {
    static SAID: Once = Once::new();
    if is_too_old(version) {
        SAID.call_once(|| {
            warn!(
                version,
                "JetStream before 2.12.3 is known to lose streams; NoETL data is unaffected, but \
                 other consumers of the event stream miss the lost messages"
            );
        });
    }
}

/// Returns `true` if a version is older than [`VERSION_MIN`], and `false` if it cannot be parsed.
fn is_too_old(version: &str) -> bool {
    let mut parts = version.split(['.', '-', '+']).map(str::parse::<u64>);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => (major, minor, patch) < VERSION_MIN,
        _ => false,
    }
}

/// Returns the delay after this number of failed attempts to connect.
fn delay(failed: u32) -> Duration {
    // The lost connection counts as well.
    RETRY.delay(failed.saturating_add(1))
}

async fn connect(address: &Address, gone: Arc<Notify>) -> Result<Session, ConnectError> {
    let servers = address.servers();
    let credentials = address.credentials().clone();
    let notified = gone.clone();
    let is_used = Arc::new(AtomicBool::new(false));
    let used = is_used.clone();
    // The client would reconnect by itself and send its buffered messages, although some that were
    // sent before are lost. Later messages would then be stored before earlier ones. The callback
    // therefore allows authentication only once, and the client gives up after as many failures as
    // there are servers.
    let introduce = move |_nonce| {
        let answer = match used.load(Ordering::Relaxed) {
            true => Err(AuthError::new("a connection is made once")),
            false => Ok(auth(&credentials)),
        };
        async move { answer }
    };
    let client = ConnectOptions::with_auth_callback(introduce)
        .name("noetl")
        .custom_inbox_prefix(inbox(address.credentials()))
        .connection_timeout(TIMEOUT)
        .ping_interval(PING_EVERY)
        .max_reconnects(servers.len())
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed | Event::LameDuckMode) {
                notified.notify_one();
            }
            async {}
        })
        .connect(servers)
        .await?;
    is_used.store(true, Ordering::Relaxed);
    let context = ContextBuilder::new()
        .timeout(TIMEOUT)
        .max_ack_inflight(IN_FLIGHT_MAX)
        .build(client.clone());
    Ok(Session { client, context, gone })
}

/// Returns the prefix of reply subjects. Each user has a separate one, so that a server's
/// permissions can prevent users from reading each other's replies.
fn inbox(credentials: &NatsCredentials) -> String {
    const USUAL: &str = "_INBOX";
    let is_plain = |user: &str| {
        user.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    match credentials {
        NatsCredentials::Password { user, .. } if !user.is_empty() && is_plain(user) => {
            format!("{USUAL}.{user}")
        }
        NatsCredentials::Password { .. } | NatsCredentials::Token(_) | NatsCredentials::None => {
            USUAL.to_owned()
        }
    }
}

fn auth(credentials: &NatsCredentials) -> Auth {
    let mut auth = Auth::new();
    match credentials {
        NatsCredentials::None => {}
        NatsCredentials::Password { user, password } => {
            auth.username = Some(user.clone());
            auth.password = Some(password.clone());
        }
        NatsCredentials::Token(token) => auth.token = Some(token.clone()),
    }
    auth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_and_unsupported_versions_are_distinguished() {
        for old in ["2.9.24", "2.12.2", "2.12.2-RC.1", "1.99.99"] {
            assert!(is_too_old(old), "{old}");
        }
        for good in ["2.12.3", "2.12.10", "2.15.1", "3.0.0-beta", "", "unknown"] {
            assert!(!is_too_old(good), "{good}");
        }
    }

    #[test]
    fn reconnect_delays_grow_to_a_limit() {
        assert_eq!(delay(0), Duration::from_millis(50));
        assert_eq!(delay(1), Duration::from_millis(100));
        assert_eq!(delay(20), Duration::from_millis(2000));
        assert_eq!(delay(u32::MAX), Duration::from_millis(2000));
    }
}

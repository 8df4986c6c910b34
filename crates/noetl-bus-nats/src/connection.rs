//! One connection after the other, for as long as the stream lives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Auth, AuthError, Client, ConnectError, ConnectOptions, Event};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::address::{Address, Credentials};

/// How long a server may take to answer anything.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// How often a silent server is asked whether it is still there; after two questions without an
/// answer it is not.
const PING_EVERY: Duration = Duration::from_secs(5);

/// Messages under way at once; whoever publishes more waits.
const IN_FLIGHT_MAX: usize = 8192;

/// How long to wait before the next try: from the first failure to the tenth and after.
const PAUSES: std::ops::RangeInclusive<u64> = 50..=2000;

/// A connection that stands.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) context: Context,
    gone: Arc<Notify>,
}

impl Session {
    /// Says that the server did not answer in time: the connection is given up for another.
    pub(crate) fn doubt(&self) {
        self.gone.notify_one();
    }
}

/// The present connection, and the task that sees to there being one.
pub(crate) struct Connection {
    session: watch::Receiver<Option<Session>>,
    closing: CancellationToken,
}

impl Connection {
    /// Begins to connect, and goes on with it until this is dropped.
    pub(crate) fn open(address: Address) -> Self {
        let (sender, session) = watch::channel(None);
        let closing = CancellationToken::new();
        let keeper = Keeper { address, session: sender, closing: closing.clone() };
        tokio::spawn(keeper.run());
        Self { session, closing }
    }

    /// The connection, if there is one.
    pub(crate) fn session(&self) -> Option<Session> {
        self.session.borrow().clone()
    }

    /// Resolves when there is none.
    pub(crate) async fn lost(&self) {
        let mut session = self.session.clone();
        // Without anybody who connects there is none either.
        let _ = session.wait_for(Option::is_none).await;
    }

    pub(crate) fn is_there(&self) -> bool {
        self.session.borrow().is_some()
    }

    /// Resolves when there is one.
    pub(crate) async fn there(&self) {
        let mut session = self.session.clone();
        if session.wait_for(Option::is_some).await.is_err() {
            // Nobody connects any more, so there never will be one.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

struct Keeper {
    address: Address,
    session: watch::Sender<Option<Session>>,
    closing: CancellationToken,
}

impl Keeper {
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
                    warn!(servers = %self.address, "the connection to NATS is lost; trying again");
                }
                Err(error) => {
                    if failed == 0 {
                        warn!(servers = %self.address, %error, "NATS is not reached; trying again");
                    }
                    failed = failed.saturating_add(1);
                }
            }
            tokio::time::sleep(pause(failed)).await;
        }
    }
}

/// The first version that keeps its streams over restarts and crashes.
const VERSION_MIN: (u64, u64, u64) = (2, 12, 3);

/// Says once in the life of the process that a server is too old to be trusted with streams.
fn warn_of_version(version: &str) {
    static SAID: Once = Once::new();
    if is_too_old(version) {
        SAID.call_once(|| {
            warn!(
                version,
                "JetStream before 2.12.3 is known to lose streams; nothing of ours is lost with \
                 them, but other readers of the event stream miss what was in it"
            );
        });
    }
}

/// Whether a version is before the first that is known to be good. One that cannot be read is not.
fn is_too_old(version: &str) -> bool {
    let mut parts = version.split(['.', '-', '+']).map(str::parse::<u64>);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => (major, minor, patch) < VERSION_MIN,
        _ => false,
    }
}

fn pause(failed: u32) -> Duration {
    let doubled = PAUSES.start().saturating_mul(1 << failed.min(16));
    Duration::from_millis(doubled.min(*PAUSES.end()))
}

async fn connect(address: &Address, gone: Arc<Notify>) -> Result<Session, ConnectError> {
    let servers = address.servers();
    let credentials = address.credentials().clone();
    let told = gone.clone();
    let is_used = Arc::new(AtomicBool::new(false));
    let used = is_used.clone();
    // A client would connect again by itself and go on with what waits in it, though some of what
    // was sent before is lost: then later messages would be kept before earlier ones. So it may
    // introduce itself once, and gives up when that fails as often as there are servers.
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
                told.notify_one();
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

/// Returns where answers are sent. Users have places of their own, so that a server can keep each
/// from reading the answers of others.
fn inbox(credentials: &Credentials) -> String {
    const USUAL: &str = "_INBOX";
    let is_plain = |user: &str| {
        user.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    match credentials {
        Credentials::Password { user, .. } if !user.is_empty() && is_plain(user) => {
            format!("{USUAL}.{user}")
        }
        Credentials::Password { .. } | Credentials::Token(_) | Credentials::None => {
            USUAL.to_owned()
        }
    }
}

fn auth(credentials: &Credentials) -> Auth {
    let mut auth = Auth::new();
    match credentials {
        Credentials::None => {}
        Credentials::Password { user, password } => {
            auth.username = Some(user.clone());
            auth.password = Some(password.clone());
        }
        Credentials::Token(token) => auth.token = Some(token.clone()),
    }
    auth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_told_from_new_ones() {
        for old in ["2.9.24", "2.12.2", "2.12.2-RC.1", "1.99.99"] {
            assert!(is_too_old(old), "{old}");
        }
        for good in ["2.12.3", "2.12.10", "2.15.1", "3.0.0-beta", "", "unknown"] {
            assert!(!is_too_old(good), "{good}");
        }
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(pause(0), Duration::from_millis(50));
        assert_eq!(pause(1), Duration::from_millis(100));
        assert_eq!(pause(20), Duration::from_millis(2000));
        assert_eq!(pause(u32::MAX), Duration::from_millis(2000));
    }
}

//! Task that keeps the worker connected.

use std::sync::Arc;
use std::time::Duration;

use noetl_api::connection::{Hello, KindDeclaration, PROTOCOL};
use noetl_api::{ClientError, Id};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::outgoing::Unacked;
use super::{LineEnds, LineState};
use crate::remote::lend::Lender;
use crate::remote::link::{RETRY, ServerLink, chain};

/// Time after which the worker tries again to connect to a server without connections.
const UNSUPPORTED_FOR: Duration = Duration::from_secs(60);

/// Maximum number of consecutive connections that end before a welcome although the server
/// responds. Then commands are leased with long polls.
const FAILED_MAX: u32 = 5;

/// Keeps the worker connected.
pub(crate) struct LineTask {
    pub(crate) link: Arc<ServerLink>,
    pub(crate) lender: Lender,
    pub(crate) ends: LineEnds,
    pub(crate) pool: Option<String>,
    pub(crate) kinds: Vec<String>,
    pub(crate) slots: usize,
    /// Cancelled when the worker must claim no more commands.
    pub(crate) draining: CancellationToken,
}

/// End of one attempt to stay connected.
#[derive(Debug)]
pub(super) enum AttemptOutcome {
    /// The connection was established and lost.
    Lost,
    /// The server responded, and the connection ended before a welcome.
    Refused,
    /// The server cannot be reached.
    Unreachable,
    /// The server has no connections for workers.
    Unsupported,
}

impl LineTask {
    /// Runs until `stop` is cancelled.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = self.stay_connected() => {}
            () = stop.cancelled() => {}
        }
    }

    async fn stay_connected(&mut self) {
        let mut unacked = Unacked::default();
        let (mut delays, mut failed) = (RETRY.delays(), 0);
        loop {
            let ended = self.attempt(&mut unacked).await;
            self.ends.state.send_if_modified(|state| {
                let was_connected = *state == LineState::Connected;
                if was_connected {
                    *state = LineState::Connecting;
                }
                was_connected
            });
            self.link.counters.set_connected(false);
            unacked.restart();
            match ended {
                AttemptOutcome::Lost => {
                    delays.reset();
                    failed = 0;
                }
                AttemptOutcome::Unreachable => failed = 0,
                AttemptOutcome::Refused => failed += 1,
                AttemptOutcome::Unsupported => failed = FAILED_MAX,
            }
            if failed >= FAILED_MAX {
                self.use_long_polls(&mut unacked).await;
                continue;
            }
            tokio::time::sleep(delays.next_delay()).await;
        }
    }

    async fn attempt(&mut self, unacked: &mut Unacked) -> AttemptOutcome {
        match self.link.client.connect_worker().await {
            Ok(Some((sender, receiver))) => Box::pin(self.talk(sender, receiver, unacked)).await,
            Ok(None) => AttemptOutcome::Unsupported,
            Err(error) => {
                let ended = match &error {
                    ClientError::Transport(_) => AttemptOutcome::Unreachable,
                    _ => AttemptOutcome::Refused,
                };
                if !error.is_passing() {
                    warn!(error = chain(&error), "server rejected worker connection, retrying");
                }
                self.link.note::<()>(&Err(error));
                ended
            }
        }
    }

    /// Leaves the commands to long polls for a while.
    async fn use_long_polls(&mut self, unacked: &mut Unacked) {
        let is_new = self.ends.state.send_replace(LineState::Unsupported) != LineState::Unsupported;
        if is_new {
            info!("server has no worker connections, using long polls");
        }
        unacked.abandon();
        let until = tokio::time::sleep(UNSUPPORTED_FOR);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return,
                // Dropped: the sender uses HTTP instead.
                Some(_) = self.ends.outgoing.recv() => {}
            }
        }
    }

    /// Returns the first message of a connection.
    pub(super) fn hello(&self) -> Hello {
        let kinds = self.kinds.iter().map(KindDeclaration::named).collect();
        Hello {
            protocol: PROTOCOL,
            worker_id: self.link.name.clone(),
            public_key: self.link.key.public(),
            pools: self.pool.iter().cloned().collect(),
            kinds: Some(kinds),
            // A step with a tool that no worker has fails, instead of waiting for one.
            other_kinds: true,
            slots: self.slots,
            lease_seconds: None,
            holds: self.lender.leases.commands().into_iter().map(Id::from).collect(),
        }
    }
}

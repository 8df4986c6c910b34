//! Claims pending commands for the free slots of a session.
//!
//! While a slot is free, a long poll of each pool is open, so commits wake the session and the
//! fairness of handoffs is that of long polls.

use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use noetl_journal::QueuedPoll;
use noetl_model::ExponentialBackoff;
use noetl_store::CommandFilter;
use noetl_work::LEASE_BATCH_MAX;
use tokio::sync::watch;
use tracing::warn;

use super::worker::ConnectedWorker;
use crate::leasing::{LOOK_EVERY, LeaseError, LeaseService};

/// Backoff while the store is unavailable.
const RETRY: ExponentialBackoff =
    ExponentialBackoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// Claims commands for one session.
pub(super) struct Feed {
    pub(super) leasing: LeaseService,
    pub(super) worker: Arc<ConnectedWorker>,
    pub(super) session: u64,
    pub(super) name: Arc<str>,
    pub(super) wanted: Arc<[CommandFilter]>,
}

/// Result of one search for commands.
enum Search {
    Over,
    Full,
    /// More commands may be pending.
    More,
    Empty,
}

impl Feed {
    /// Claims commands until the session ends or the control plane drains. A claim that has begun
    /// is always completed: its commands belong to the worker, whichever session sends them.
    pub(super) async fn run(self) {
        let mut changed = self.worker.subscribe();
        let mut first = 0;
        loop {
            match self.worker.free(self.session) {
                None => return,
                Some(0) if self.wait_for_change(&mut changed).await => continue,
                Some(0) => return,
                Some(_) => {}
            }
            if !self.serve(&mut first, &mut changed).await {
                return;
            }
        }
    }

    /// Keeps long polls open until no slot is free. Returns `false` if the session is over.
    async fn serve(&self, first: &mut usize, changed: &mut watch::Receiver<()>) -> bool {
        let polls = |wanted: &CommandFilter| self.leasing.calls.wait_for(wanted.clone());
        let lines: Vec<QueuedPoll> = self.wanted.iter().map(polls).collect();
        let mut delays = RETRY.delays();
        loop {
            // Each pool is the first one in turn.
            *first = (*first + 1) % lines.len();
            let pause = match self.search(&lines, *first).await {
                Ok(Search::Over) => return false,
                Ok(Search::Full) => return true,
                Ok(Search::More) => continue,
                Ok(Search::Empty) => {
                    delays.reset();
                    LOOK_EVERY
                }
                Err(error) => {
                    warn!(worker = &*self.name, %error, "failed to lease commands, retrying");
                    delays.next_delay()
                }
            };
            let mut pause = std::pin::pin!(tokio::time::sleep(pause));
            loop {
                tokio::select! {
                    _ = select_all(lines.iter().map(|line| Box::pin(line.called()))) => break,
                    () = &mut pause => break,
                    () = self.leasing.draining.cancelled() => return false,
                    is_open = changed.changed() => match self.worker.free(self.session) {
                        Some(0) => return true,
                        Some(_) if is_open.is_ok() => {}
                        Some(_) | None => return false,
                    },
                }
            }
        }
    }

    /// Claims commands of all pools for the free slots.
    async fn search(&self, lines: &[QueuedPoll], first: usize) -> Result<Search, LeaseError> {
        let mut has_more = false;
        for index in (0..lines.len()).map(|index| (first + index) % lines.len()) {
            let free = match self.worker.free(self.session) {
                None => return Ok(Search::Over),
                Some(0) => return Ok(Search::Full),
                Some(free) => free.min(LEASE_BATCH_MAX),
            };
            let looking = lines[index].looks();
            let taken = self.leasing.take(&self.wanted[index], &self.name, free).await?;
            if taken.is_empty() {
                continue;
            }
            looking.found();
            has_more |= taken.len() == free;
            self.worker.add(taken);
        }
        Ok(if has_more { Search::More } else { Search::Empty })
    }

    /// Waits until the worker's state changes. Returns `false` if the control plane drains.
    async fn wait_for_change(&self, changed: &mut watch::Receiver<()>) -> bool {
        tokio::select! {
            is_open = changed.changed() => is_open.is_ok(),
            () = self.leasing.draining.cancelled() => false,
        }
    }
}

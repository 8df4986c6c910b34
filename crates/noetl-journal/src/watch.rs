//! Notifies subscribers when an execution's events are committed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use noetl_engine::Status;
use noetl_model::{Event, ExecutionId};
use noetl_store::StoreError;
use tokio::sync::{broadcast, oneshot, watch};

/// Maximum number of events a subscriber may lag behind before it has to read the log.
const BACKLOG: usize = 8192;

type Waiters = HashMap<ExecutionId, Vec<oneshot::Sender<Status>>>;

type Followers = HashMap<ExecutionId, watch::Sender<()>>;

/// Source of commit notifications. Cheap to clone.
#[derive(Clone)]
pub struct CommitWatch {
    events: broadcast::Sender<Arc<Event>>,
    waiters: Arc<Mutex<Waiters>>,
    trouble: Arc<watch::Sender<Option<Arc<StoreError>>>>,
    commits: watch::Sender<()>,
    followers: Arc<Mutex<Followers>>,
}

/// Notifies of changes to an execution in this process. Dropping it unsubscribes.
pub struct ExecutionWatcher {
    moved: watch::Receiver<()>,
    execution: ExecutionId,
    followers: Arc<Mutex<Followers>>,
}

impl ExecutionWatcher {
    /// Waits until something is committed for the execution since the last call, or since the
    /// subscription.
    pub async fn moved(&mut self) {
        // The sender exists as long as there is a subscriber.
        let _ = self.moved.changed().await;
    }
}

impl Drop for ExecutionWatcher {
    fn drop(&mut self) {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = |sender: &watch::Sender<()>| sender.receiver_count() <= 1;
        if followers.get(&self.execution).is_some_and(is_last) {
            followers.remove(&self.execution);
        }
    }
}

impl CommitWatch {
    pub(crate) fn new() -> Self {
        Self {
            events: broadcast::Sender::new(BACKLOG),
            waiters: Arc::default(),
            trouble: Arc::new(watch::Sender::new(None)),
            commits: watch::Sender::new(()),
            followers: Arc::default(),
        }
    }

    /// Subscribes to every event committed from now on. A subscriber that lags behind has to read
    /// the log.
    pub fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    /// Subscribes to one execution. Commits of other executions cost nothing.
    pub fn follow(&self, execution: ExecutionId) -> ExecutionWatcher {
        let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = followers.entry(execution).or_insert_with(|| watch::Sender::new(()));
        let moved = sender.subscribe();
        ExecutionWatcher { moved, execution, followers: self.followers.clone() }
    }

    /// Returns a receiver that changes when this process commits.
    pub fn commits(&self) -> watch::Receiver<()> {
        self.commits.subscribe()
    }

    /// Returns a receiver of the store's latest commit failure, `None` while commits succeed.
    pub fn last_commit_error(&self) -> watch::Receiver<Option<Arc<StoreError>>> {
        self.trouble.subscribe()
    }

    /// Returns a receiver that resolves when the execution ends after this call.
    pub(crate) fn end_of(&self, execution: ExecutionId) -> oneshot::Receiver<Status> {
        let (told, end) = oneshot::channel();
        self.lock().entry(execution).or_default().push(told);
        end
    }

    /// Removes closed waiters for the end of an execution.
    pub(crate) fn forget_gone(&self, execution: ExecutionId) {
        let mut waiters = self.lock();
        if let Some(waiting) = waiters.get_mut(&execution) {
            waiting.retain(|waiter| !waiter.is_closed());
            if waiting.is_empty() {
                waiters.remove(&execution);
            }
        }
    }

    /// Publishes the committed events of one execution.
    pub(crate) fn committed(&self, events: &[Arc<Event>]) {
        self.commits.send_replace(());
        if let Some(event) = events.first() {
            self.notify(event.execution);
        }
        if self.events.receiver_count() > 0 {
            for event in events {
                // It is no failure if the last receiver was dropped.
                let _ = self.events.send(event.clone());
            }
        }
    }

    /// Notifies subscribers of an execution that it may have new data.
    pub(crate) fn notify(&self, execution: ExecutionId) {
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(follower) = followers.get(&execution) {
            follower.send_replace(());
        }
    }

    pub(crate) fn ended(&self, execution: ExecutionId, status: Status) {
        let waiters = self.lock().remove(&execution);
        for waiter in waiters.into_iter().flatten() {
            let _ = waiter.send(status);
        }
    }

    pub(crate) fn store_failed(&self, error: Arc<StoreError>) {
        self.trouble.send_replace(Some(error));
    }

    pub(crate) fn store_works(&self) {
        self.trouble.send_if_modified(|trouble| trouble.take().is_some());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

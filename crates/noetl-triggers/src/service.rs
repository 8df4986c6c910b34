//! The services of this crate, opened together.

use std::sync::Arc;
use std::time::Duration;

use noetl_identity::IdGenerator;
use noetl_journal::{JournalService, Subscriptions};
use noetl_model::Clock;
use noetl_remote::RemoteService;
use noetl_results::ExecutionData;
use noetl_store::TriggerStore;

use crate::dead_letters::DeadLetters;
use crate::dedup::DedupStarter;
use crate::documents::DocumentTriggers;
use crate::listeners::{IngressService, Listeners};
use crate::message_starts::MessageStarter;
use crate::schedules::{Runner, Schedules};

#[derive(Debug, Clone)]
pub struct Options {
    /// Whether this process starts scheduled runs.
    pub schedules: bool,
    /// Dedup window of webhook signatures, for listeners without `dedup` and without a signed time.
    /// Zero turns it off.
    pub replay_window: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { schedules: true, replay_window: Duration::from_secs(300) }
    }
}

/// Services that start executions. Cheap to clone.
#[derive(Clone)]
pub struct Triggers {
    pub subscriptions: Subscriptions,
    /// Settings of push subscriptions' listeners.
    pub listeners: Listeners,
    /// Starts for messages of subscriptions.
    pub messages: MessageStarter,
    /// Messages pushed to this server.
    pub ingress: IngressService,
    pub schedules: Schedules,
    /// Starts that are deduplicated by key.
    pub starts: DedupStarter,
    /// Messages of subscriptions that could not start an execution.
    pub dead_letters: DeadLetters,
}

/// Stores and services that these services use.
pub struct TriggerDeps<'a> {
    pub store: Arc<dyn TriggerStore>,
    pub clock: &'a Arc<dyn Clock>,
    pub ids: &'a IdGenerator,
    pub documents: &'a DocumentTriggers,
    pub journal: &'a JournalService,
    pub remote: &'a RemoteService,
    pub data: &'a ExecutionData,
}

impl Triggers {
    /// Opens the services, and starts the schedule runner if the options say so.
    pub fn open(options: &Options, deps: TriggerDeps<'_>) -> Self {
        let TriggerDeps { store, clock, ids, documents, journal, remote, data } = deps;
        let subscriptions = documents.subscriptions.clone();
        let executions = &journal.executions;
        let schedules = Schedules::new(
            documents.schedules.clone(),
            executions.clone(),
            journal.metrics.clone(),
        );
        if options.schedules {
            let runner = Runner::new(schedules.clone(), journal.lifetime.closing().clone());
            journal.lifetime.spawn(runner.run());
        }
        let starts =
            DedupStarter::new(store, executions.clone(), subscriptions.clone(), ids.clone());
        let messages = MessageStarter::new(
            executions.clone(),
            starts.clone(),
            remote.reports.clone(),
            journal.metrics.clone(),
        );
        let ingress = IngressService::new(
            subscriptions.clone(),
            messages.clone(),
            journal.metrics.clone(),
            clock.clone(),
            options.replay_window,
        );
        let dead_letters =
            DeadLetters::new(data.objects.clone(), remote.reports.clone(), subscriptions.clone());
        let listeners = documents.listeners.clone();
        Self { subscriptions, listeners, messages, ingress, schedules, starts, dead_letters }
    }
}

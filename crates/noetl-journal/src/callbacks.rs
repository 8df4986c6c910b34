//! Answers of jobs that a worker started without waiting for them.
//!
//! The watcher of a container job knows the execution and step, but not the command. An answer
//! applies to the step's command that is parked for it. If the watcher was faster than the worker,
//! it applies to the command that is still being started. Any other answer is late and changes
//! nothing; the server counts it in its metrics.

use std::sync::Arc;

use noetl_engine::{Answer, AnswerSource, Complete, Fail, Input, Rejection, TimerKind};
use noetl_model::placeholder::{defuse, defuse_failure};
use noetl_model::{CommandId, CommandState, EventId, ExecutionId, Fact, Failure, Map, Seq, Value};
use noetl_results::ResultStorage;
use noetl_store::{CommandRow, JournalStore, StoreError};
use noetl_work::Redaction;

use crate::journal::{Accepted, Journal, SubmitError};

/// Number of latest events searched for a command that is not parked yet. It was issued moments
/// ago.
const WINDOW: u64 = 2000;

#[derive(Debug, Clone)]
pub struct CallbackOutcome {
    pub execution: ExecutionId,
    /// Step that started the job.
    pub step: String,
    /// Result of the job, or its failure.
    pub outcome: Result<Value, Failure>,
}

#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The journal did not accept the answer.
    #[error("failed to record the answer")]
    Submit(#[source] SubmitError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Callback service. Cheap to clone.
#[derive(Clone)]
pub struct Callbacks {
    store: Arc<dyn JournalStore>,
    journal: Journal,
    results: ResultStorage,
    redaction: Redaction,
}

impl Callbacks {
    pub(crate) fn new(
        store: Arc<dyn JournalStore>,
        journal: Journal,
        results: ResultStorage,
        redaction: Redaction,
    ) -> Self {
        Self { store, journal, results, redaction }
    }

    /// Applies an answer. Returns the resulting event, or `None` if no command waits for the
    /// answer.
    pub async fn deliver(&self, called: CallbackOutcome) -> Result<Option<EventId>, CallbackError> {
        let CallbackOutcome { execution, step, mut outcome } = called;
        let tenant = self.store.tenant_of(execution).await.map_err(CallbackError::Store)?;
        let Some(tenant) = tenant else { return Ok(None) };
        match &mut outcome {
            Ok(data) => {
                defuse(data);
                self.redaction.value(&tenant, data);
            }
            Err(failure) => {
                defuse_failure(failure);
                self.redaction.failure(&tenant, failure);
            }
        }
        if let Some(row) = self.parked(execution, &step).await? {
            let event = self.answer(&row, outcome.clone()).await?;
            if event.is_some() {
                return Ok(event);
            }
        }
        match self.starting(execution, &step).await? {
            Some(row) => self.ahead(&row, outcome).await,
            None => Ok(None),
        }
    }

    /// Returns the oldest command of a step that is parked for an answer. Every such command has a
    /// deadline, which is a timer.
    async fn parked(
        &self,
        execution: ExecutionId,
        step: &str,
    ) -> Result<Option<CommandRow>, CallbackError> {
        let due = self.store.timers_of(execution).await.map_err(CallbackError::Store)?;
        let wakes = due.iter().filter_map(|row| {
            match serde_json::from_value::<TimerKind>(row.payload.clone()) {
                Ok(TimerKind::Wake { command, .. }) => Some(command),
                Ok(_) | Err(_) => None,
            }
        });
        let mut waiting: Vec<CommandId> = wakes.collect();
        waiting.sort_unstable();
        for command in waiting {
            if let Some(row) = self.open(command, step).await? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns the newest command of a step that a worker is still starting.
    async fn starting(
        &self,
        execution: ExecutionId,
        step: &str,
    ) -> Result<Option<CommandRow>, CallbackError> {
        let tenant = self.store.tenant_of(execution).await.map_err(CallbackError::Store)?;
        let Some(tenant) = tenant else { return Ok(None) };
        let row = self.store.execution(&tenant, execution).await.map_err(CallbackError::Store)?;
        let Some(row) = row else { return Ok(None) };
        let from = Seq(row.version.0.saturating_sub(WINDOW));
        let window = usize::try_from(WINDOW).unwrap_or(usize::MAX);
        let events = self.store.read(execution, from, window).await;
        let events = events.map_err(CallbackError::Store)?;
        let issued = events.iter().rev().find_map(|event| match &event.fact {
            Fact::CommandIssued(issued) if &*issued.step == step => Some(event.id.into()),
            _ => None,
        });
        let Some(command) = issued else { return Ok(None) };
        let open = self.open(command, step).await?;
        Ok(open.filter(|row| row.state != CommandState::Pending))
    }

    async fn open(
        &self,
        command: CommandId,
        step: &str,
    ) -> Result<Option<CommandRow>, CallbackError> {
        let row = self.store.command(command).await.map_err(CallbackError::Store)?;
        Ok(row.filter(|row| &*row.step == step && !row.state.is_terminal()))
    }

    async fn answer(
        &self,
        row: &CommandRow,
        outcome: Result<Value, Failure>,
    ) -> Result<Option<EventId>, CallbackError> {
        let (outcome, reference) = match outcome {
            Ok(mut data) => {
                let kept = self.results.offload(&mut data).await;
                (Ok(data), kept.map_err(|error| CallbackError::Submit(error.into()))?)
            }
            Err(failure) => (Err(failure), None),
        };
        let from = AnswerSource::Trusted;
        let answer = Answer { command: row.id, from, outcome, reference, actor: None };
        first(self.journal.submit(row.execution, Input::Answer(Box::new(answer))).await)
    }

    /// Ends a command whose answer arrived before the worker parked it.
    async fn ahead(
        &self,
        row: &CommandRow,
        outcome: Result<Value, Failure>,
    ) -> Result<Option<EventId>, CallbackError> {
        let command = row.id;
        let input = match outcome {
            Ok(mut data) => {
                let kept = self.results.offload(&mut data).await;
                let reference = kept.map_err(|error| CallbackError::Submit(error.into()))?;
                let data = Some(data);
                Input::Complete(Complete {
                    command,
                    data,
                    reference,
                    is_final: false,
                    ctx: Map::new(),
                    step: Map::new(),
                    run: None,
                })
            }
            Err(failure) => {
                Input::Fail(Fail { command, failure, ctx: Map::new(), step: Map::new() })
            }
        };
        first(self.journal.submit(row.execution, input).await)
    }
}

/// Returns the first event an answer led to, or `None` if the answer was late.
fn first(taken: Result<Accepted, SubmitError>) -> Result<Option<EventId>, CallbackError> {
    match taken {
        Ok(accepted) => Ok(accepted.events.first().map(|event| event.id)),
        Err(SubmitError::Refused(
            Rejection::NotAwaited
            | Rejection::CommandFinished
            | Rejection::NotFound
            | Rejection::AlreadyFinished(_),
        )) => Ok(None),
        Err(error) => Err(CallbackError::Submit(error)),
    }
}

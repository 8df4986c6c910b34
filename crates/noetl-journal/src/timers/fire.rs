//! Fires one timer. Every action is idempotent, because a timer may fire more than once.

use noetl_engine::{
    Abandon, Answer, AnswerSource, Cancel, ChildOutcome, Input, Rejection, Timeout, TimerKind, Wake,
};
use noetl_model::event::ChildExecution;
use noetl_model::trace::SpanId;
use noetl_model::{CommandId, ExecutionId, Failure, FailureKind};
use noetl_store::{ExecutionStatus, StoreError, TimerRow};
use tracing::{debug, warn};

use super::TimerService;
use crate::executions::{ParentLink, PreassignedId, StartError, StartRequest};
use crate::journal::SubmitError;
use crate::notifications::Notification;
use crate::timer_rows;
use crate::traces::TraceParent;

/// Attempts to send a notification before it is dropped.
const NOTICE_TRIES: u32 = 8;

/// Claims after which an unwanted start is dropped. Earlier deliveries of it may still be in
/// flight. They end within one or two leases, because the journal's timeout is shorter.
const START_LOOKS: u32 = 3;

impl TimerService {
    /// Fires a timer. Returns `true` if it is done; otherwise it is retried when its lease expires.
    pub(super) async fn fire(&self, row: &TimerRow) -> bool {
        let outcome = match timer_rows::kind(row) {
            Ok(kind) => self.perform(row, kind).await,
            Err(error) => {
                let kind = row.kind.as_str();
                warn!(kind, due.id = %row.id, %error, "unknown timer kind, retrying");
                return false;
            }
        };
        match outcome {
            // A rejection means the execution moved on by itself, so the timer is not needed.
            Ok(()) | Err(SubmitError::Refused(_)) => true,
            Err(error) => {
                warn!(execution.id = %row.target, %error, "failed to fire timer, retrying");
                false
            }
        }
    }

    async fn perform(&self, row: &TimerRow, kind: TimerKind) -> Result<(), SubmitError> {
        let input = match kind {
            TimerKind::Wake { command, at } => Input::Wake(Wake { command, at }),
            TimerKind::StepTimeout { step, run } => Input::Timeout(Timeout::Step { step, run }),
            TimerKind::AdmissionTimeout { step, until } => {
                Input::Timeout(Timeout::Admission { step, until })
            }
            TimerKind::Deadline => Input::Timeout(Timeout::Execution),
            TimerKind::Abandon => Input::Abandon(Abandon),
            TimerKind::ChildEnded { command, child, outcome } => answer(command, child, outcome),
            TimerKind::CancelChild { parent } => {
                return self.cancel_child(row.target, parent).await;
            }
            TimerKind::StartChild { parent, command, child, payload, pool, trace } => {
                let request = StartRequest {
                    catalog: child.catalog,
                    path: child.path.as_ref().map(ToString::to_string),
                    version: child.version,
                    payload,
                    parent: Some(parent),
                    pool: pool.map(|pool| pool.to_string()),
                    trace: trace.map_or(TraceParent::Unsaid, TraceParent::Said),
                };
                return self.start_child(row, parent, command, *child, request).await;
            }
            TimerKind::Notify { what, step, error } => {
                return self.tell(row, &what, step.as_deref(), error.as_deref()).await;
            }
        };
        self.journal.submit(row.target, input).await.map(|_| ())
    }

    async fn cancel_child(
        &self,
        child: ExecutionId,
        parent: ExecutionId,
    ) -> Result<(), SubmitError> {
        match self.journal.submit(child, unwanted(parent)).await {
            // The child was never started. A later delivery of its start sees that the parent no
            // longer wants it.
            Err(SubmitError::Refused(Rejection::NotFound)) => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }

    async fn start_child(
        &self,
        row: &TimerRow,
        parent: ExecutionId,
        command: CommandId,
        child: ChildExecution,
        request: StartRequest,
    ) -> Result<(), SubmitError> {
        if !self.is_wanted(row, parent, command, &child).await? {
            return self.forget_child(row, child.execution, parent).await;
        }
        let fixed = PreassignedId {
            execution: child.execution,
            key: child.execution.get().cast_unsigned(),
        };
        let of = ParentLink {
            command: child.waits.then_some(command),
            returns: child.returns.clone(),
            depth: child.depth,
        };
        let between = (parent, child.execution);
        let ready = self.executions.prepare_child(&row.tenant, between, request).await;
        let started = match ready {
            Ok(ready) => self.executions.start_as(&row.tenant, &ready.with_parent(of), fixed).await,
            Err(error) => Err(error),
        };
        match started {
            Ok(_) | Err(StartError::Submit(SubmitError::Refused(Rejection::AlreadyStarted))) => {
                // Checked again after the start. A parent that gave up before the start is detected
                // here. A parent that gives up after it sends a cancel that finds the child.
                if !self.is_wanted(row, parent, command, &child).await? {
                    return self.cancel_child(child.execution, parent).await;
                }
                Ok(())
            }
            Err(StartError::Store(error)) => Err(SubmitError::Store(error.into())),
            Err(StartError::Submit(error)) if !matches!(error, SubmitError::Refused(_)) => {
                Err(error)
            }
            Err(error) if child.waits => {
                let outcome = ChildOutcome::Failed(unstarted(&error));
                let input = answer(command, child.execution, outcome);
                self.journal.submit(parent, input).await.map(|_| ())
            }
            Err(error) => {
                warn!(execution.id = %parent, %error, "failed to start called playbook");
                Ok(())
            }
        }
    }

    /// Returns `true` if the parent still wants the child. If the parent's command waits for the
    /// child, the command must still be open. Otherwise the parent must not be cancelled.
    async fn is_wanted(
        &self,
        row: &TimerRow,
        parent: ExecutionId,
        command: CommandId,
        child: &ChildExecution,
    ) -> Result<bool, SubmitError> {
        let failed = |error: StoreError| SubmitError::Store(error.into());
        if child.waits {
            // The parent sent the timer, so its commands are in the same database. A command has
            // one child, so an open command waits for this one.
            let found = self.store.command(command).await.map_err(failed)?;
            return Ok(found.is_some_and(|command| !command.state.is_terminal()));
        }
        let found = self.everywhere.execution(&row.tenant, parent).await.map_err(failed)?;
        Ok(!found.is_some_and(|parent| parent.status == ExecutionStatus::Cancelled))
    }

    /// Leaves an unwanted child unstarted, and cancels it if it was started before.
    async fn forget_child(
        &self,
        row: &TimerRow,
        child: ExecutionId,
        parent: ExecutionId,
    ) -> Result<(), SubmitError> {
        match self.journal.submit(child, unwanted(parent)).await {
            // Another delivery may be about to start the child, and die before it sees that it
            // should not.
            Err(SubmitError::Refused(Rejection::NotFound))
                if (2..START_LOOKS).contains(&row.attempts) =>
            {
                Err(SubmitError::Busy)
            }
            outcome => outcome.map(|_| ()),
        }
    }

    async fn tell(
        &self,
        row: &TimerRow,
        what: &str,
        step: Option<&str>,
        error: Option<&str>,
    ) -> Result<(), SubmitError> {
        let failed = |error: StoreError| SubmitError::Store(error.into());
        let found = self.everywhere.execution(&row.tenant, row.execution).await.map_err(failed)?;
        let Some(found) = found else { return Ok(()) };
        let Ok(playbook) = self.executions.playbook(&row.tenant, found.catalog).await else {
            return Ok(());
        };
        let began = self.executions.start_event(row.execution).await.map_err(failed)?;
        let span = SpanId::of_execution(row.execution);
        let trace = began.and_then(|began| began.trace).map(|trace| trace.with_span(span));
        let (execution, path, trace) = (row.execution, &*found.path, trace.as_ref());
        let notice = Notification { execution, path, what, step, error, at: row.at, trace };
        match self.notices.send(&playbook, &notice).await {
            Ok(()) => Ok(()),
            Err(error) if row.attempts >= NOTICE_TRIES => {
                warn!(execution.id = %row.execution, %error, "notification failed, giving up");
                Ok(())
            }
            Err(error) => {
                debug!(execution.id = %row.execution, %error, "notification failed, retrying");
                Err(SubmitError::Busy)
            }
        }
    }
}

/// Returns the input that cancels a child its parent no longer waits for.
fn unwanted(parent: ExecutionId) -> Input {
    let reason = Some(format!("its parent execution {parent} does not wait for it any more"));
    Input::Cancel(Cancel { reason, actor: None })
}

fn answer(command: CommandId, child: ExecutionId, outcome: ChildOutcome) -> Input {
    let (outcome, reference) = outcome.answer(child);
    let from = AnswerSource::Child(child);
    Input::Answer(Box::new(Answer { command, from, outcome, reference, actor: None }))
}

/// Returns the failure of a called playbook that did not start.
fn unstarted(error: &StartError) -> Failure {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    let kind = match error {
        StartError::NotFound(_) => FailureKind::NotFound,
        _ => FailureKind::Config,
    };
    Failure::new(kind, message)
}

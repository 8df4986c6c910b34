//! Records many reports about one execution: reads together, submits in order, and waits for all.

use std::collections::{HashMap, HashSet, VecDeque};

use noetl_engine::Input;
use noetl_journal::Queued;
use noetl_model::row::types;
use noetl_model::{CommandId, EventId, ExecutionId, SubscriptionId, Tenant};
use noetl_store::{CommandRow, NewLine};

use super::{EventReport, ReportError, Reports};

/// Maximum number of reports of one batch that are submitted and not committed. Equals a few
/// journal commits; more would crowd out other callers in its queue.
const IN_FLIGHT_MAX: usize = 2048;

/// Whether a report was in the event log before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated(pub bool);

/// A report with the input to submit for it.
pub(super) struct Prepared {
    pub(super) report: EventReport,
    /// Input about a command, or `None` if the report is only stored.
    pub(super) about: Option<Box<CommandReport>>,
}

/// Input of a report about a command.
pub(super) struct CommandReport {
    pub(super) input: Input,
    pub(super) first_id: Option<EventId>,
    /// Output that the step printed.
    pub(super) printed: Vec<NewLine>,
}

/// A report in the journal's queue.
pub(super) enum Sent {
    /// A report that is only stored.
    Kept {
        queued: Queued,
        /// Event ID the report came with.
        asked: Option<EventId>,
    },
    /// A report about a command.
    About { queued: Queued, report: Box<EventReport>, printed: Vec<NewLine> },
}

/// Commands named by reports of a batch, each read once.
#[derive(Default)]
pub(super) struct Commands(HashMap<CommandId, Option<CommandRow>>);

impl Commands {
    /// Returns the command that a report is about, if the report has a command's event type and the
    /// command belongs to its execution.
    pub(super) async fn command_of(
        &mut self,
        reports: &Reports,
        report: &EventReport,
    ) -> Result<Option<CommandRow>, ReportError> {
        let is_about = matches!(
            report.event_type.as_str(),
            types::COMMAND_CLAIMED
                | types::COMMAND_STARTED
                | types::CALL_DONE
                | types::CALL_ERROR
                | types::COMMAND_COMPLETED
                | types::COMMAND_FAILED
        );
        let (true, Some(command)) = (is_about, report.command()) else { return Ok(None) };
        let row = match self.0.get(&command) {
            Some(row) => row.clone(),
            None => {
                let row = reports.store.command(command).await.map_err(ReportError::Store)?;
                self.0.insert(command, row.clone());
                row
            }
        };
        Ok(row.filter(|row| row.execution == report.execution))
    }
}

impl Reports {
    /// Records reports about one execution, in order. Returns for each its event ID and whether it
    /// was recorded before, or its error.
    ///
    /// # Errors
    ///
    /// Returns an error if a store operation failed. Retry the whole batch: reports recorded by
    /// then count as repeated.
    pub async fn take_all(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        reports: Vec<EventReport>,
    ) -> Result<Vec<Result<(EventId, Repeated), ReportError>>, ReportError> {
        let known = self.store.execution(tenant, execution).await.map_err(ReportError::Store)?;
        // The response must reveal nothing about the log of another tenant.
        let is_own = match &known {
            Some(_) => true,
            None => {
                let id = SubscriptionId::new(execution.get());
                let found = self.store.subscription(tenant, id).await;
                found.map_err(ReportError::Store)?.is_some()
            }
        };
        let seen = match is_own {
            true => self.seen(execution, &reports).await?,
            false => HashSet::new(),
        };
        let workers: HashSet<&String> =
            reports.iter().filter_map(|report| report.worker.as_ref()).collect();
        if known.is_some() {
            for worker in workers {
                self.workers.heard(&Some(tenant.clone()), worker).await;
            }
        }
        let (mut commands, mut in_batch) = (Commands::default(), HashSet::new());
        let mut answers: Vec<Option<Result<(EventId, Repeated), ReportError>>> = Vec::new();
        let mut prepared = Vec::new();
        for (index, mut report) in reports.into_iter().enumerate() {
            answers.push(None);
            if let Some(event) = report.event
                && (seen.contains(&event) || in_batch.contains(&event))
            {
                answers[index] = Some(Ok((event, Repeated(true))));
                continue;
            }
            let checked = match self.check(tenant, &mut report) {
                // A subscription's log has no journal.
                Ok(()) if known.is_none() => {
                    let event = report.event;
                    let noted = self.note(tenant, report).await;
                    in_batch.extend(event.filter(|_| noted.is_ok()));
                    answers[index] = Some(noted.map(|event| (event, Repeated(false))));
                    continue;
                }
                Ok(()) => self.prepare(tenant, report, &mut commands).await,
                Err(refused) => Err(refused),
            };
            match checked {
                Ok(report) => {
                    in_batch.extend(report.report.event);
                    prepared.push((index, report));
                }
                Err(error @ ReportError::Store(_)) => return Err(error),
                Err(refused) => answers[index] = Some(Err(refused)),
            }
        }
        // Each report is queued before the next, which preserves their order; then all are awaited.
        let mut in_flight = VecDeque::new();
        for (index, report) in prepared {
            if in_flight.len() >= IN_FLIGHT_MAX
                && let Some((index, sent)) = in_flight.pop_front()
            {
                answers[index] = Some(self.answered(tenant, sent).await);
            }
            match self.queue(report).await {
                Ok(sent) => in_flight.push_back((index, sent)),
                Err(error) => answers[index] = Some(Err(error)),
            }
        }
        for (index, sent) in in_flight {
            answers[index] = Some(self.answered(tenant, sent).await);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    async fn answered(
        &self,
        tenant: &Tenant,
        sent: Sent,
    ) -> Result<(EventId, Repeated), ReportError> {
        Ok((self.concluded(tenant, sent).await?, Repeated(false)))
    }

    /// Returns the IDs of reports that are already in the event log.
    async fn seen(
        &self,
        execution: ExecutionId,
        reports: &[EventReport],
    ) -> Result<HashSet<EventId>, ReportError> {
        let ids: Vec<EventId> = reports.iter().filter_map(|report| report.event).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        self.store.find_events(execution, &ids).await.map_err(ReportError::Store)
    }
}

//! Verifies stored data: each event log is consistent, and rows agree with their logs.
//!
//! Verification is read-only. On a store in use, an execution may change between the reads of its
//! row and of its log, so a problem counts only if the row was unchanged.

use std::collections::BTreeMap;

use noetl_model::{CommandId, ExecutionId, Fact, Seq, Tenant, Timestamp};
use noetl_store::{
    CommandChange, CommandRow, ExecutionRow, ExecutionStatus, StoreError, ViewStore,
};

/// Events read at a time.
const PAGE: usize = 1000;

/// Maximum number of reads of an execution that changes during verification. One that keeps
/// changing is skipped.
const LOOKS_MAX: usize = 5;

/// An inconsistency of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistency {
    pub execution: ExecutionId,
    /// Description of the inconsistency in one sentence.
    pub message: String,
}

/// Result of verifying one page of executions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyReport {
    pub executions: usize,
    /// Number of events in their logs.
    pub events: u64,
    /// ID of the last execution; `None` if there are no more.
    pub last: Option<ExecutionId>,
    /// Inconsistencies found in these executions.
    pub problems: Vec<Inconsistency>,
}

/// Verifies up to `limit` executions of all tenants with an ID above `after`.
///
/// Of each log: sequence numbers have no gap, and at most one decided end exists. Of each row:
/// version, status, and end time match the log. Of each command: its row matches its events, and it
/// has ended if its execution has; only a command of an ended execution may be missing.
pub async fn verify(
    store: &dyn ViewStore,
    after: ExecutionId,
    limit: usize,
) -> Result<VerifyReport, StoreError> {
    let page = store.every_execution(after, limit).await?;
    let mut verified =
        VerifyReport { last: page.last().map(|(_, row)| row.id), ..VerifyReport::default() };
    for (tenant, row) in page {
        let execution = row.id;
        let found = look(store, &tenant, row).await?;
        verified.executions += 1;
        verified.events += found.events;
        let problem = |message| Inconsistency { execution, message };
        verified.problems.extend(found.problems.into_iter().map(problem));
    }
    Ok(verified)
}

/// Verifies an execution, and repeats if it changed in the meantime.
async fn look(
    store: &dyn ViewStore,
    tenant: &Tenant,
    mut row: ExecutionRow,
) -> Result<LogSummary, StoreError> {
    for _ in 0..LOOKS_MAX {
        let found = check(store, &row).await?;
        if found.problems.is_empty() {
            return Ok(found);
        }
        match store.execution(tenant, row.id).await? {
            Some(again) if again != row => row = again,
            Some(_) => return Ok(found),
            // The execution was purged.
            None => return Ok(LogSummary::default()),
        }
    }
    Ok(LogSummary::default())
}

#[derive(Default)]
struct LogSummary {
    events: u64,
    last: Seq,
    ends: Vec<(ExecutionStatus, Timestamp)>,
    is_imported: bool,
    commands: BTreeMap<CommandId, CommandRow>,
    problems: Vec<String>,
}

async fn check(store: &dyn ViewStore, row: &ExecutionRow) -> Result<LogSummary, StoreError> {
    let mut found = LogSummary::default();
    found.read_log(store, row).await?;
    found.compare_row(row);
    found.compare_commands(store, row).await?;
    Ok(found)
}

impl LogSummary {
    fn wrong(&mut self, message: impl Into<String>) {
        self.problems.push(message.into());
    }

    /// Reads the log up to the row's version. Later events are not checked.
    async fn read_log(
        &mut self,
        store: &dyn ViewStore,
        row: &ExecutionRow,
    ) -> Result<(), StoreError> {
        let mut place = Seq::START;
        while place < row.version {
            let page = match store.read(row.id, place, PAGE).await {
                Ok(page) => page,
                Err(StoreError::Row(error)) => {
                    self.wrong(format!(
                        "an event after place {} is not readable: {error}",
                        place.0
                    ));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let Some(last) = page.last().map(|event| event.seq) else { return Ok(()) };
            for event in page.iter().filter(|event| event.seq <= row.version) {
                if event.seq != self.last.next() {
                    self.wrong(format!(
                        "the log goes from place {} to {}",
                        self.last.0, event.seq.0
                    ));
                }
                self.last = event.seq;
                self.events += 1;
                self.is_imported |= event.seq.0 == 1 && matches!(event.fact, Fact::Imported(_));
                if let Some(status) = end_of(&event.fact) {
                    self.ends.push((status, event.at));
                }
                self.follow(CommandChange::from_event(event));
            }
            place = last;
        }
        Ok(())
    }

    fn follow(&mut self, change: Option<CommandChange>) {
        match change {
            Some(CommandChange::Insert(row)) => {
                self.commands.insert(row.id, row);
            }
            Some(CommandChange::Move { id, state, worker, ended_at }) => {
                if let Some(row) = self.commands.get_mut(&id) {
                    row.advance(state, worker.as_ref(), ended_at);
                }
            }
            Some(CommandChange::Release { .. }) | None => {}
        }
    }

    fn compare_row(&mut self, row: &ExecutionRow) {
        if self.last != row.version {
            let (version, last) = (row.version.0, self.last.0);
            self.wrong(format!("its row is at version {version}, and its log ends at {last}"));
        }
        if self.ends.len() > 1 {
            self.wrong(format!("it ended {} times", self.ends.len()));
        }
        // An imported execution may end without an event of this control plane.
        if self.is_imported {
            return;
        }
        let status = self.ends.first().map_or(ExecutionStatus::Running, |end| end.0);
        if status != row.status {
            let (is, says) = (row.status.as_str(), status.as_str());
            self.wrong(format!("its row says {is}, and its log {says}"));
        } else if self.ends.first().map(|end| end.1) != row.ended_at {
            self.wrong("its row and its log differ on when it ended");
        }
    }

    async fn compare_commands(
        &mut self,
        store: &dyn ViewStore,
        row: &ExecutionRow,
    ) -> Result<(), StoreError> {
        for (id, expected) in std::mem::take(&mut self.commands) {
            let is_open = row.status.is_final() && !expected.state.is_terminal();
            if is_open {
                self.wrong(format!("it ended, and its command {id} is open"));
            }
            match store.command(id).await? {
                // Retention purges commands of ended executions before their log.
                None if row.status.is_final() => {}
                None => self.wrong(format!("its command {id} has no row")),
                Some(found) if found != expected => {
                    let (is, says) = (found.state.as_str(), expected.state.as_str());
                    self.wrong(format!(
                        "the row of its command {id} is {is} and differs from the log, {says}"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

fn end_of(fact: &Fact) -> Option<ExecutionStatus> {
    match fact {
        Fact::PlaybookCompleted { .. } => Some(ExecutionStatus::Completed),
        Fact::PlaybookFailed { .. } => Some(ExecutionStatus::Failed),
        Fact::PlaybookCancelled { .. } => Some(ExecutionStatus::Cancelled),
        _ => None,
    }
}

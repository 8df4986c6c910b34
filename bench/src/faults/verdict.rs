//! What has to hold of every log, whatever was killed.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use noetl_model::{ExecutionId, Fact, Seq, Tenant};
use noetl_store::{
    CommandStore, EventLog, ExecutionFilter, ExecutionRow, ExecutionStatus, ExecutionStore,
};
use noetl_store_postgres::{Options, PostgresStore};
use serde::Serialize;

use crate::Failure;
use crate::load::{PATH, STEPS};

/// Rows and events read at a time.
const PAGE: usize = 1000;

/// Problems told in words; a broken run has more of the same.
const TOLD_MAX: usize = 50;

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Verdict {
    pub(crate) kills: usize,
    pub(crate) crashes: usize,
    /// Starts that were answered.
    acknowledged: usize,
    executions: usize,
    events: usize,
    /// Commands that were run again because their process was gone.
    again: usize,
    /// Executions that had not ended when patience did, and could still go on.
    unfinished: usize,
    pub(crate) problems: Vec<String>,
    /// What else is told in words.
    #[serde(skip)]
    pub(crate) notes: Vec<String>,
}

impl Verdict {
    /// Waits until everything has ended, or patience has, and looks at every log.
    pub(crate) async fn of(
        url: &str,
        acknowledged: &[ExecutionId],
        patience: Duration,
    ) -> Result<Self, Failure> {
        let store = PostgresStore::open(Options::new(url)?.migrate(false)).await?;
        let until = Instant::now() + patience;
        while Instant::now() < until
            && !store.unfinished(ExecutionId::new(i64::MIN), 1).await?.is_empty()
        {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let mut verdict = Self { acknowledged: acknowledged.len(), ..Self::default() };
        let mut found = HashMap::new();
        loop {
            let filter =
                ExecutionFilter { offset: found.len(), limit: PAGE, ..ExecutionFilter::default() };
            let page = store.executions(&Tenant::default(), &filter).await?;
            let is_last = page.len() < PAGE;
            found.extend(page.into_iter().map(|row| (row.id, row)));
            if is_last {
                break;
            }
        }
        for id in acknowledged {
            if !found.contains_key(id) {
                verdict.problems.push(format!("{id}: acknowledged and gone"));
            }
        }
        verdict.executions = found.len();
        // What others run beside the load ends as they like.
        for row in found.values().filter(|row| *row.path == *PATH) {
            verdict.look_at(&store, row).await?;
        }
        verdict.hold_against_rows(&store).await?;
        Ok(verdict)
    }

    /// Looks for what does not fit in the database, whatever was run.
    async fn hold_against_rows(&mut self, store: &PostgresStore) -> Result<(), Failure> {
        let mut after = ExecutionId::new(i64::MIN);
        loop {
            let verified = noetl_views::verify(store, after, PAGE).await?;
            let found = verified.problems.into_iter();
            self.problems.extend(found.map(|it| format!("{}: {}", it.execution, it.message)));
            match verified.last {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.problems.is_empty() && self.unfinished == 0
    }

    async fn look_at(&mut self, store: &PostgresStore, row: &ExecutionRow) -> Result<(), Failure> {
        let (mut seq, mut ends, mut open) = (Seq::START, 0, 0);
        let mut left: HashMap<String, usize> = HashMap::new();
        let mut completed = HashSet::new();
        loop {
            let page = store.read(row.id, seq, PAGE).await?;
            for event in &page {
                if event.seq != seq.next() {
                    self.problem(row, format!("a gap after {seq}"));
                }
                seq = event.seq;
                ends += usize::from(event.fact.is_end());
                match &event.fact {
                    Fact::CommandIssued(_) => match store.command(event.id.into()).await? {
                        Some(command) => open += usize::from(!command.state.is_terminal()),
                        None => self.problem(row, format!("command {} has no row", event.id)),
                    },
                    Fact::CommandExpired { .. } => self.again += 1,
                    Fact::CommandCompleted { command, .. } if !completed.insert(*command) => {
                        self.problem(row, format!("command {command} was completed twice"));
                    }
                    Fact::StepExited { step, .. } => {
                        *left.entry(step.to_string()).or_default() += 1;
                    }
                    _ => {}
                }
            }
            self.events += page.len();
            if page.len() < PAGE {
                break;
            }
        }
        if row.version != seq {
            self.problem(row, format!("its row says {} and its log {seq}", row.version));
        }
        if ends != usize::from(row.status.is_final()) {
            self.problem(row, format!("{} with {ends} ends", row.status.as_str()));
        }
        if left.values().any(|&times| times != 1) {
            self.problem(row, format!("steps left more than once: {left:?}"));
        }
        match row.status {
            ExecutionStatus::Running if open == 0 => self.problem(row, "it is stuck".into()),
            ExecutionStatus::Running => self.unfinished += 1,
            ExecutionStatus::Completed if left.len() != STEPS || open > 0 => {
                self.problem(row, format!("{} steps were left, {open} commands open", left.len()));
            }
            ExecutionStatus::Completed => {}
            ExecutionStatus::Failed | ExecutionStatus::Cancelled => {
                self.problem(row, format!("{}: {:?}", row.status.as_str(), row.error));
            }
        }
        Ok(())
    }

    fn problem(&mut self, row: &ExecutionRow, text: String) {
        self.problems.push(format!("{}: {text}", row.id));
    }

    /// Prints it as a JSON line and in words.
    #[expect(clippy::print_stdout, clippy::print_stderr, reason = "what this program is for")]
    pub(crate) fn print(&self, seed: u64) {
        match serde_json::to_string(self) {
            Ok(line) => println!("{line}"),
            Err(error) => println!("{{\"error\":\"{error}\"}}"),
        }
        eprintln!(
            "{} executions with {} events ({} starts acknowledged); {} faults, and {} crashes of the \
             database; {} commands run again; {} unfinished; seed {seed}",
            self.executions,
            self.events,
            self.acknowledged,
            self.kills,
            self.crashes,
            self.again,
            self.unfinished
        );
        for line in self.notes.iter().chain(self.problems.iter().take(TOLD_MAX)) {
            eprintln!("  {line}");
        }
        let verdict = if self.is_good() { "all logs are sound" } else { "something is wrong" };
        eprintln!("{verdict}: {} problems", self.problems.len());
    }
}

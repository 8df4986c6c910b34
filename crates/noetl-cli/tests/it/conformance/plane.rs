//! A control plane with its worker, and what an execution left in its log.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use noetl_catalog::RegisterError;
use noetl_control::{ControlPlane, Options};
use noetl_journal::StartRequest;
use noetl_local::Worker;
use noetl_model::event::{ParkReason, StepOutcome};
use noetl_model::{CommandId, Event, ExecutionId, Fact, Failure, Map, Seq, Tenant, Value};
use noetl_playbook::Diagnostic;
use noetl_store::{ExecutionRow, ExecutionStatus, SystemClock};
use noetl_store_sqlite::SqliteStore;
use noetl_tools::ToolRegistry;
use tokio::task::JoinHandle;

/// Timeout of an execution. Reached only if one hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A control plane with its worker.
pub(super) struct TestPlane {
    pub(super) control: Arc<ControlPlane>,
    pub(super) tenant: Tenant,
    worker: JoinHandle<()>,
}

impl TestPlane {
    pub(super) async fn open() -> Self {
        Self::with_slots(16).await
    }

    /// Opens a control plane whose worker has this many slots; with 0, the test acts as the worker.
    pub(super) async fn with_slots(slots: usize) -> Self {
        let store = SqliteStore::open(noetl_store_sqlite::Options::memory()).unwrap();
        let options = Options { slots, ..Options::default() };
        let control = ControlPlane::open(options, Arc::new(store), Arc::new(SystemClock)).await;
        let control = Arc::new(control.unwrap());
        let tools = ToolRegistry::standard(noetl_tools::Options::default());
        let worker = Worker::new(control.journal.local.clone(), tools);
        let worker = tokio::spawn(worker.run(Duration::from_secs(1)));
        Self { control, tenant: Tenant::default(), worker }
    }

    pub(super) async fn close(self) {
        self.control.drain();
        self.worker.await.unwrap();
        self.control.close().await;
    }

    /// Registers steps as the playbook of this name.
    pub(super) async fn register(&self, name: &str, steps: &str) {
        let registered = self.try_register(&document(name, steps)).await;
        registered.unwrap_or_else(|diagnostics| panic!("{diagnostics:?}\n{steps}"));
    }

    /// Registers a document; answers with all that was found, as an error when it was refused.
    pub(super) async fn try_register(
        &self,
        text: &str,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let registered =
            self.control.catalog.register(&self.tenant, text.to_owned(), "playbook", false).await;
        match registered {
            Ok((_, diagnostics)) => Ok(diagnostics),
            Err(RegisterError::Invalid(diagnostics)) => Err(diagnostics),
            Err(RegisterError::Store(error)) => panic!("{error}"),
            Err(RegisterError::Quota(error)) => panic!("{error}"),
        }
    }

    /// Registers steps and starts them.
    pub(super) async fn start(&self, steps: &str) -> ExecutionId {
        self.register("t", steps).await;
        self.start_path("t", Map::new()).await
    }

    pub(super) async fn start_path(&self, path: &str, payload: Map) -> ExecutionId {
        let request =
            StartRequest { path: Some(path.to_owned()), payload, ..StartRequest::default() };
        self.control.journal.executions.start(&self.tenant, request).await.unwrap().execution
    }

    pub(super) async fn log(&self, id: ExecutionId) -> Vec<Event> {
        self.control.journal.executions.events(id, Seq::START, 200_000).await.unwrap()
    }

    /// Waits for the end of an execution.
    pub(super) async fn ended(&self, id: ExecutionId) -> FinishedRun {
        let finished = self.control.journal.executions.wait_until_finished(&self.tenant, id);
        let row = tokio::time::timeout(PATIENCE, finished).await;
        let row = row.expect("an execution that ends").unwrap().unwrap();
        FinishedRun { row, log: self.log(id).await }
    }

    /// The approvals of an execution that wait for an answer: step, command, token.
    pub(super) async fn asked(&self, id: ExecutionId) -> Vec<(Arc<str>, CommandId, Arc<str>)> {
        let log = self.log(id).await;
        let over: HashSet<CommandId> = log.iter().filter_map(|it| over(&it.fact)).collect();
        let mut asked = Vec::new();
        for event in &log {
            if let Fact::CommandParked { command, step, on: ParkReason::Callback(callback) } =
                &event.fact
                && !over.contains(command)
            {
                asked.push((step.clone(), *command, callback.token.clone()));
            }
        }
        asked
    }

    /// Answers one of them.
    pub(super) async fn answer(
        &self,
        id: ExecutionId,
        (_, command, token): &(Arc<str>, CommandId, Arc<str>),
        data: Value,
    ) {
        self.control.journal.executions.answer(id, *command, token, Ok(data)).await.unwrap();
    }

    /// Waits until a step of an execution waits for an answer.
    pub(super) async fn until_asked(&self, id: ExecutionId) -> (Arc<str>, CommandId, Arc<str>) {
        let mut events = self.control.journal.watch.events();
        loop {
            if let Some(asked) = self.asked(id).await.pop() {
                return asked;
            }
            let next = tokio::time::timeout(PATIENCE, events.recv()).await;
            // Falling behind is as good a reason to look again as an event.
            let _ = next.expect("something that happens");
        }
    }
}

/// The command that an event is the end of.
pub(super) fn over(fact: &Fact) -> Option<CommandId> {
    match fact {
        Fact::CommandCompleted { command, .. }
        | Fact::CommandFailed { command, .. }
        | Fact::CommandCancelled { command, .. } => Some(*command),
        _ => None,
    }
}

/// Runs steps to their end.
pub(super) async fn run(steps: &str) -> FinishedRun {
    let plane = TestPlane::open().await;
    let id = plane.start(steps).await;
    let ended = plane.ended(id).await;
    plane.close().await;
    ended
}

/// Runs the [`graph`] of a text.
pub(super) async fn run_graph(text: &str) -> FinishedRun {
    run(&graph(text)).await
}

/// A playbook of this name with these steps.
pub(super) fn document(name: &str, steps: &str) -> String {
    let head = format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {name}}}\n");
    if steps.contains("workflow:") {
        return head + steps;
    }
    format!("{head}workflow:\n{steps}")
}

/// Generates no-op steps from their arcs: `a -> b[condition] | c` takes the first arc whose
/// condition is true, `a => b | c` takes all of them. Steps are ordered by their first mention.
pub(super) fn graph(text: &str) -> String {
    let mut steps: Vec<(&str, String)> = Vec::new();
    let mut place = |name| {
        steps.iter().position(|(step, _)| *step == name).unwrap_or_else(|| {
            steps.push((name, String::new()));
            steps.len() - 1
        })
    };
    let mut routers = Vec::new();
    for statement in text.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        let (mode, arrow) =
            if statement.contains("=>") { ("inclusive", "=>") } else { ("exclusive", "->") };
        let (from, targets) = statement.split_once(arrow).unwrap_or((statement, ""));
        let from = place(from.trim());
        let mut arcs = Vec::new();
        for target in targets.split('|').map(str::trim).filter(|target| !target.is_empty()) {
            let (name, guard) = target.split_once('[').unwrap_or((target, ""));
            place(name);
            let guard =
                guard.strip_suffix(']').map(|guard| format!(", when: \"{{{{ {guard} }}}}\""));
            arcs.push(format!("{{step: {name}{}}}", guard.unwrap_or_default()));
        }
        let router = format!(", next: {{spec: {{mode: {mode}}}, arcs: [{}]}}", arcs.join(", "));
        routers.push((from, router));
    }
    for (from, router) in routers {
        steps[from].1 = router;
    }
    steps.iter().fold(String::new(), |mut text, (name, next)| {
        writeln!(text, "  - {{step: {name}, tool: {{kind: noop}}{next}}}").unwrap();
        text
    })
}

/// An execution that has ended.
pub(super) struct FinishedRun {
    pub(super) row: ExecutionRow,
    pub(super) log: Vec<Event>,
}

impl FinishedRun {
    /// Returns this run if it succeeded, and panics otherwise.
    #[track_caller]
    pub(super) fn expect_completed(self) -> Self {
        assert_eq!(self.row.status, ExecutionStatus::Completed, "{:?}", self.row.error);
        self
    }

    /// Returns the failure of the execution and its step.
    #[track_caller]
    pub(super) fn failure(&self) -> (&str, &Failure) {
        assert_eq!(self.row.status, ExecutionStatus::Failed);
        let end = self.log.iter().find_map(|event| match &event.fact {
            Fact::PlaybookFailed { step, failure } => Some((&**step, failure)),
            _ => None,
        });
        end.expect("a failed execution says why")
    }

    /// The steps that were entered, in order.
    pub(super) fn entered(&self) -> String {
        let names: Vec<&str> = self.log.iter().filter_map(|event| entered(&event.fact)).collect();
        names.join(" ")
    }

    /// Returns the number of runs of a step.
    pub(super) fn runs(&self, step: &str) -> usize {
        self.log.iter().filter(|event| entered(&event.fact) == Some(step)).count()
    }

    /// Returns the number of commands issued for a step.
    pub(super) fn issued(&self, step: &str) -> usize {
        let is_of = |fact: &Fact| matches!(fact, Fact::CommandIssued(it) if &*it.step == step);
        self.log.iter().filter(|event| is_of(&event.fact)).count()
    }

    /// The place in the log where a step was first entered.
    #[track_caller]
    pub(super) fn entry_of(&self, step: &str) -> Seq {
        let entry = self.log.iter().find(|event| entered(&event.fact) == Some(step));
        entry.unwrap_or_else(|| panic!("{step} did not run")).seq
    }

    /// The place in the log where a step was last left.
    #[track_caller]
    pub(super) fn exit_of(&self, step: &str) -> Seq {
        let is_exit =
            |fact: &Fact| matches!(fact, Fact::StepExited { step: name, .. } if &**name == step);
        let exit = self.log.iter().rev().find(|event| is_exit(&event.fact));
        exit.unwrap_or_else(|| panic!("{step} did not end")).seq
    }

    /// Returns the outcome of the last run of a step, and whether its failure was handled.
    #[track_caller]
    pub(super) fn failed_step(&self, step: &str) -> (&Failure, bool) {
        let failed = self.log.iter().rev().find_map(|event| match &event.fact {
            Fact::StepExited {
                step: name,
                outcome: StepOutcome::Failed { failure, handled, .. },
                ..
            } if &**name == step => Some((failure, *handled)),
            _ => None,
        });
        failed.unwrap_or_else(|| panic!("{step} did not fail"))
    }

    /// The result of an execution that ended well.
    #[track_caller]
    pub(super) fn result(&self) -> &Value {
        let result = self.log.iter().find_map(|event| match &event.fact {
            Fact::PlaybookCompleted { result, .. } => Some(result),
            _ => None,
        });
        result.unwrap_or_else(|| panic!("it did not complete: {:?}", self.row.error))
    }
}

fn entered(fact: &Fact) -> Option<&str> {
    match fact {
        Fact::StepEntered { step, .. } => Some(step),
        _ => None,
    }
}

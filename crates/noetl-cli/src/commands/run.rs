//! `noetl run`: runs a playbook locally to completion.

mod distributed;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use noetl_catalog::RegisterError;
use noetl_control::ControlPlane;
use noetl_journal::{StartError, StartRequest, SubmitError};
use noetl_model::{Event, ExecutionId, Fact, Map, Seq, Tenant, Value};
use noetl_playbook::{Diagnostic, Severity};
use noetl_store::{ExecutionRow, ExecutionStatus, StoreError};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;

use super::{called_playbooks, credentials, document, payload};
use crate::approvals::Approvals;
use crate::arguments::{RunArguments, RunTarget};
use crate::bus::BusSetup;
use crate::database::Database;
use crate::error::{CliError, ErrorKind};
use crate::output::progress::{self, Progress};
use crate::output::{self, diagnostics, style};
use crate::runtime::{LocalRuntime, Setup};
use crate::signals::StopRequests;
use crate::stores::StoreLocation;

/// Time for running steps to finish after the execution ended. They have been cancelled by then.
const GRACE: Duration = Duration::from_secs(2);

/// Events per read of the event log, after the live feed lagged.
const PAGE: usize = 1000;

/// Poll interval of the event log on a shared database. Another process may deliver a timer of this
/// execution and decide the next events, which the live feed of this process does not contain.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(crate) fn main(arguments: RunArguments) -> Result<ExitCode, CliError> {
    if arguments.runtime == RunTarget::Distributed {
        return distributed::start(arguments);
    }
    distributed::not_meant(&arguments)?;
    if document::is_stdin(&arguments.file) && payload::reads_stdin(&arguments.workload) {
        let message = "stdin holds the playbook or the payload, not both";
        return Err(CliError::new(ErrorKind::User, message).hint("name a file for one of them"));
    }
    let document = document::read(&arguments.file)?;
    let checked = noetl_playbook::check(&document.text);
    report_findings(&document.name, &document.text, &checked.diagnostics);
    let Some(playbook) = checked.playbook else {
        return Ok(ExitCode::from(2));
    };
    let mut texts = called_playbooks::called_by(&arguments.file, &playbook);
    let payload = payload::workload(&arguments.workload)?;
    if arguments.dry_run {
        output::note(&format!("{}: ok, and nothing was run", document.name));
        return Ok(ExitCode::SUCCESS);
    }
    texts.push(document.text);
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    runtime.block_on(run(arguments, texts, payload))
}

fn report_findings(name: &str, text: &str, diagnostics: &[Diagnostic]) {
    if diagnostics.is_empty() {
        return;
    }
    let rendered = diagnostics::render(name, text, diagnostics, style::of_stderr());
    output::note(rendered.trim_end_matches('\n'));
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        output::note(&format!("{name}: {}", diagnostics::count(diagnostics)));
    }
}

/// Runs the last of `texts`. The others are the playbooks it calls.
async fn run(
    arguments: RunArguments,
    texts: Vec<String>,
    payload: Map,
) -> Result<ExitCode, CliError> {
    let is_json = arguments.is_json();
    let database = match (&arguments.database_url, arguments.db) {
        (Some(url), _) => Database::from_url(url)?,
        (None, Some(path)) => Database::Sqlite(path),
        (None, None) => Database::Memory,
    };
    let brought = credentials::read(&arguments.credentials)?;
    let encryption_key = credentials::key(&database, !brought.is_empty())?;
    let is_shared = matches!(database, Database::Postgres(_));
    let setup = Setup {
        location: StoreLocation::One(database),
        slots: arguments.slots,
        // Leave executions of other processes alone; `noetl dev` resumes them.
        resume: false,
        grace: GRACE,
        encryption_key,
        retention: None,
        bus: BusSetup::default(),
        reached_at: String::new(),
        own: Vec::new(),
    };
    // Handle signals before the first step starts, so that its processes are stopped before this
    // process exits.
    let stop = StopRequests::listen();
    let mut stop = stop.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    let runtime = LocalRuntime::open(setup).await?;
    let approvals = Approvals::new(arguments.approve);
    let (control, tenant) = (&runtime.control, Tenant::default());
    let outcome = match credentials::keep(control, &tenant, brought).await {
        Ok(()) => execute(control, texts, payload, approvals, is_shared, &mut stop).await,
        Err(failure) => Err(failure),
    };
    if let (Ok((row, _)), true) = (&outcome, is_shared) {
        finish_for_others(control, row.id, &mut stop).await;
    }
    runtime.close().await;
    let (row, result) = outcome?;
    if is_json {
        output::json(&json!({
            "execution_id": row.id.to_string(),
            "status": row.status.as_str(),
            "result": result,
            "error": row.error,
            "duration_ms": row.updated_at.since(row.started_at).as_millis(),
            "events": row.version,
        }))?;
    } else {
        say_end(&row);
        output::result(&result)?;
    }
    Ok(match row.status {
        ExecutionStatus::Completed => ExitCode::SUCCESS,
        // A running execution means that the user interrupted twice.
        ExecutionStatus::Cancelled | ExecutionStatus::Running => ExitCode::from(130),
        ExecutionStatus::Failed => ExitCode::FAILURE,
    })
}

fn say_end(row: &ExecutionRow) {
    let style = style::of_stderr();
    let state = match row.status {
        ExecutionStatus::Completed => style.good("completed"),
        ExecutionStatus::Failed => style.bad("failed"),
        ExecutionStatus::Cancelled => style.warn("cancelled"),
        ExecutionStatus::Running => style.warn("unfinished"),
    };
    let took = progress::human(row.updated_at.since(row.started_at));
    let why = row.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let (path, why) = (style::one_line(&row.path), style::one_line(&why));
    output::note(&format!("{path} {state} in {took}{why}"));
}

/// Waits for claimed steps of other executions that must not run twice, or until Ctrl-C.
///
/// All other claimed commands are released when the process closes, and other processes run them.
async fn finish_for_others(control: &ControlPlane, own: ExecutionId, stop: &mut StopRequests) {
    let say = |count| {
        let steps = if count == 1 { "step" } else { "steps" };
        output::note(&format!(
            "waiting for {count} {steps} of other executions that may not run twice; Ctrl-C gives up on them"
        ));
    };
    tokio::select! {
        () = control.drain_non_idempotent(own, say) => {}
        () = stop.next() => {}
    }
}

/// Starts the playbook and follows it until it ends.
///
/// The first stop request cancels the execution; the second one stops waiting for it.
async fn execute(
    control: &Arc<ControlPlane>,
    texts: Vec<String>,
    payload: Map,
    approvals: Approvals,
    is_shared: bool,
    stop: &mut StopRequests,
) -> Result<(ExecutionRow, Value), CliError> {
    let tenant = Tenant::default();
    let mut catalog = None;
    for text in texts {
        let registered = control.catalog.register(&tenant, text, "Playbook", false).await;
        let (entry, _) = registered.map_err(|error| unregistered(&error))?;
        catalog = Some(entry.id);
    }
    let mut events = control.journal.watch.events();
    let request = StartRequest { catalog, payload, ..StartRequest::default() };
    let started = control.journal.executions.start(&tenant, request).await;
    let execution = started.map_err(|error| unstarted(&error))?.execution;

    let mut follower = Follower::new(execution, approvals);
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut trouble = control.journal.watch.last_commit_error();
    let mut interrupted = false;
    while !follower.ended {
        tokio::select! {
            event = events.recv() => match event {
                Ok(event) if event.execution != execution => approvals.see(control, &event),
                // Another process committed the events in between.
                Ok(event) if event.seq > follower.seen.next() => follower.catch_up(control).await?,
                Ok(event) => follower.see(control, &event),
                Err(RecvError::Lagged(_)) => follower.catch_up(control).await?,
                Err(RecvError::Closed) => break,
            },
            changed = trouble.changed() => if changed.is_ok() {
                let failed = trouble.borrow_and_update().clone();
                if let Some(error) = failed {
                    follower.progress.clear();
                    return Err(store_failed(&error));
                }
            },
            _ = look.tick(), if is_shared => follower.catch_up(control).await?,
            () = stop.next() => {
                if interrupted {
                    break;
                }
                interrupted = true;
                let reason = Some("interrupted".to_owned());
                // The cancellation is rejected only if the execution ended in the meantime.
                let _ = control.journal.executions.cancel(&tenant, execution, reason).await;
            }
        }
    }
    follower.progress.clear();
    let row = control.journal.executions.get(&tenant, execution).await;
    let row = row.map_err(|error| store_failed(&error))?;
    let row =
        row.ok_or_else(|| CliError::new(ErrorKind::Internal, "the execution's row is missing"))?;
    Ok((row, follower.result))
}

/// Follows one execution through the live feed, or through its event log if the feed lagged or
/// another process advanced the execution.
struct Follower {
    execution: ExecutionId,
    seen: Seq,
    ended: bool,
    result: Value,
    progress: Progress,
    approvals: Approvals,
}

impl Follower {
    fn new(execution: ExecutionId, approvals: Approvals) -> Self {
        let (seen, result) = (Seq::START, Value::Null);
        Self { execution, seen, ended: false, result, progress: Progress::new(), approvals }
    }

    fn see(&mut self, control: &Arc<ControlPlane>, event: &Event) {
        if event.seq <= self.seen {
            return;
        }
        self.seen = event.seq;
        self.approvals.see(control, event);
        self.progress.show(event);
        match &event.fact {
            Fact::PlaybookCompleted { result, .. } => {
                self.result = result.clone();
                self.ended = true;
            }
            Fact::PlaybookFailed { .. } | Fact::PlaybookCancelled { .. } => self.ended = true,
            _ => {}
        }
    }

    async fn catch_up(&mut self, control: &Arc<ControlPlane>) -> Result<(), CliError> {
        loop {
            let events = control.journal.executions.events(self.execution, self.seen, PAGE).await;
            let events = events.map_err(|error| store_failed(&error))?;
            for event in &events {
                self.see(control, event);
            }
            if events.len() < PAGE {
                return Ok(());
            }
        }
    }
}

fn unregistered(error: &RegisterError) -> CliError {
    match error {
        RegisterError::Invalid(_) => CliError::new(ErrorKind::User, "the playbook has errors"),
        RegisterError::Quota(over) => CliError::from_error(ErrorKind::User, over),
        RegisterError::Store(error) => store_failed(error),
    }
}

fn unstarted(error: &StartError) -> CliError {
    match error {
        StartError::Submit(SubmitError::Refused(refusal)) => {
            CliError::new(ErrorKind::User, refusal.to_string())
        }
        StartError::Submit(SubmitError::Store(error)) => store_failed(error),
        StartError::Store(error) => store_failed(error),
        StartError::Quota(over) => CliError::from_error(ErrorKind::User, over),
        other => CliError::from_error(ErrorKind::Internal, other),
    }
}

fn store_failed(error: &StoreError) -> CliError {
    let failure = CliError::from_error(ErrorKind::Config, error);
    match error.failure() {
        StoreError::Full(_) => {
            failure.hint("free disk space; `noetl dev` continues from the last commit")
        }
        _ => failure,
    }
}

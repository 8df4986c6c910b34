//! Two control planes on one database.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_journal::StartRequest;
use noetl_model::{CommandId, ExecutionId, MachineId, Seq, Tenant};
use noetl_remote::{ConnectionCaller, EventReport, LongPoll, RenewalResult, WorkerDeclaration};
use noetl_store::{CommandRow, EventLog, ExecutionStatus, ExecutionStore, Store, SystemClock};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_app::migrated_database;
use serde_json::json;

use crate::postgres::verify::verify;

async fn replica(url: &str, number: u16) -> (Arc<ControlPlane>, Arc<PostgresStore>) {
    let options = Options::new(url).expect("a URL").lane(number);
    let store = Arc::new(PostgresStore::open(options).await.expect("a store"));
    let machine = Some(MachineId::new(number).expect("a machine number"));
    let options = ControlOptions { slots: 0, machine, ..ControlOptions::default() };
    let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await;
    (Arc::new(control.expect("a control plane")), store)
}

/// Returns a playbook with a step that leads to `width` others, which all lead to one.
pub(crate) fn fan(width: usize) -> String {
    let arcs: Vec<String> = (0..width).map(|n| format!("{{step: s{n}}}")).collect();
    let mut text = format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: fan, path: fan}}\nworkflow:\n  \
         - {{step: start, next: {{spec: {{mode: inclusive}}, arcs: [{}]}}}}\n",
        arcs.join(", ")
    );
    for n in 0..width {
        text.push_str(&format!(
            "  - {{step: s{n}, tool: {{kind: noop}}, next: {{arcs: [{{step: end}}]}}}}\n"
        ));
    }
    text.push_str("  - {step: end, tool: {kind: noop}}\n");
    text
}

/// Returns the width of the fan, 1,000 unless `NOETL_FAN` names another.
#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn width() -> usize {
    std::env::var("NOETL_FAN").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

pub(crate) async fn open_commands(store: &dyn Store) -> Vec<CommandRow> {
    store.open_commands(CommandId::new(i64::MIN), 100_000).await.expect("a list")
}

fn report(execution: ExecutionId, command: &CommandRow, event_type: &str) -> EventReport {
    EventReport {
        execution,
        event: None,
        event_type: event_type.into(),
        step: command.step.to_string(),
        status: None,
        payload: Some(json!({
            "command_id": command.id.get(), "result": {"status": "ok", "context": {"n": 1}}
        })),
        meta: None,
        worker: Some("w".into()),
        columns: None,
    }
}

/// Runs one command through a replica, like a remote worker.
pub(crate) async fn work(control: &ControlPlane, execution: ExecutionId, command: &CommandRow) {
    control.remote.reports.claim(&None, command.id, "w").await.expect("a claim");
    let tenant = Tenant::default();
    for event_type in ["command.started", "call.done", "command.completed"] {
        let recorded =
            control.remote.reports.record(&tenant, report(execution, command, event_type));
        recorded.await.expect("a report");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_committed_by_one_replica_is_pushed_by_the_other() {
    let database = migrated_database();
    let (one, _) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let caller = ConnectionCaller {
        tenant: tenant.clone(),
        scope: Some(tenant.clone()),
        actor: "token:1".into(),
    };
    let declaration = WorkerDeclaration {
        name: "w".to_owned(),
        public_key: "key".to_owned(),
        slots: 1,
        ..WorkerDeclaration::default()
    };
    let opened = other.remote.connections.open(caller, declaration, Vec::new()).await;
    let (session, _) = opened.expect("a session");
    let mut changes = session.changes();
    let registered = one.catalog.register(&tenant, fan(1), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    let request = StartRequest { catalog, ..StartRequest::default() };
    let execution =
        one.journal.executions.start(&tenant, request).await.expect("a start").execution;
    let pushed = loop {
        if let Some(pushed) = session.take_commands().pop() {
            break pushed;
        }
        changes.changed().await.expect("the session is open");
    };
    assert_eq!(pushed.row.execution, execution);
    drop(session);
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_reported_through_two_replicas_completes_exactly_once() {
    let database = migrated_database();
    let width = width();
    let (one, store) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let registered = one.catalog.register(&tenant, fan(width), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    let request = StartRequest { catalog, ..StartRequest::default() };
    let execution =
        one.journal.executions.start(&tenant, request).await.expect("a start").execution;
    loop {
        let commands = open_commands(&*store).await;
        if commands.is_empty() {
            break;
        }
        let mut running = tokio::task::JoinSet::new();
        for (n, command) in commands.into_iter().enumerate() {
            let control = if n % 2 == 0 { one.clone() } else { other.clone() };
            running.spawn(async move { work(&control, execution, &command).await });
        }
        running.join_all().await;
    }
    let row = store.execution(&tenant, execution).await.expect("a read").expect("a row");
    assert_eq!(row.status, ExecutionStatus::Completed);
    assert_eq!(usize::try_from(row.steps_completed).expect("a count"), width + 2);
    verify(&database, &*store, execution).await;
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_concurrent_claims_through_replicas_succeeds() {
    let database = migrated_database();
    let (one, store) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let registered = one.catalog.register(&tenant, fan(1), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    for _ in 0..20 {
        let request = StartRequest { catalog, ..StartRequest::default() };
        let execution =
            one.journal.executions.start(&tenant, request).await.expect("a start").execution;
        let commands = open_commands(&*store).await;
        let command = commands.iter().find(|row| row.execution == execution).expect("a command");
        let (first, second) = tokio::join!(
            one.remote.reports.claim(&None, command.id, "first"),
            other.remote.reports.claim(&None, command.id, "second"),
        );
        assert_eq!(u8::from(first.is_ok()) + u8::from(second.is_ok()), 1, "{first:?} {second:?}");
        let log = store.read(execution, Seq::START, 100).await.expect("a log");
        let is_claim = |event: &&noetl_model::Event| {
            matches!(event.fact, noetl_model::Fact::CommandClaimed { .. })
        };
        assert_eq!(log.iter().filter(is_claim).count(), 1);
    }
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_with_one_id_through_two_replicas_is_stored_once() {
    let database = migrated_database();
    let (one, store) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let registered = one.catalog.register(&tenant, fan(1), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    let request = StartRequest { catalog, ..StartRequest::default() };
    let execution =
        one.journal.executions.start(&tenant, request).await.expect("a start").execution;
    let mut sent = tokio::task::JoinSet::new();
    for id in 1..=50_i64 {
        for control in [&one, &other, &one] {
            let control = control.clone();
            sent.spawn(async move {
                let report = EventReport {
                    execution,
                    event: Some(noetl_model::EventId::new(id)),
                    event_type: "progress".into(),
                    step: "start".into(),
                    status: None,
                    payload: None,
                    meta: None,
                    worker: None,
                    columns: None,
                };
                control.remote.reports.record(&Tenant::default(), report).await.expect("kept").get()
            });
        }
    }
    let mut answered = sent.join_all().await;
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered.len(), 50, "each repeat answers with its own id");
    let log = store.read(execution, Seq::START, 1000).await.expect("a log");
    let reported = log.iter().filter(|event| event.origin() == noetl_model::Origin::Reported);
    assert_eq!(reported.count(), 50);
    verify(&database, &*store, execution).await;
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_when_another_replica_finishes_the_execution() {
    let database = migrated_database();
    let (one, store) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let registered = one.catalog.register(&tenant, fan(1), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    let request = StartRequest { catalog, ..StartRequest::default() };
    let execution =
        one.journal.executions.start(&tenant, request).await.expect("a start").execution;
    let waiting = {
        let (other, tenant) = (other.clone(), tenant.clone());
        tokio::spawn(async move {
            other.journal.executions.wait_until_finished(&tenant, execution).await
        })
    };
    loop {
        let commands = open_commands(&*store).await;
        let Some(command) = commands.first() else { break };
        work(&one, execution, command).await;
    }
    let row = waiting.await.expect("a task").expect("a read").expect("a row");
    assert_eq!(row.status, ExecutionStatus::Completed);
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_at_one_replica_report_cancels_through_another() {
    let database = migrated_database();
    let (one, store) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let registered = one.catalog.register(&tenant, fan(2), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    let mut fails = Vec::new();
    // Of two executions one fails; the other continues.
    for _ in 0..2 {
        let request = StartRequest { catalog, ..StartRequest::default() };
        fails
            .push(one.journal.executions.start(&tenant, request).await.expect("a start").execution);
    }
    let request = LongPoll {
        worker: "w".to_owned(),
        pool: None,
        kinds: None,
        max: 4,
        wait: Duration::ZERO,
        public_key: None,
    };
    let leased = one.remote.leasing.lease(&tenant, &None, request).await.expect("an answer");
    let rows: Vec<CommandRow> = leased.into_iter().map(|leased| leased.row).collect();
    let ids: Vec<CommandId> = rows.iter().map(|row| row.id).collect();
    assert_eq!(ids.len(), 4);
    let renewed = other.remote.leasing.renew(&tenant, &None, "w", &ids).await.expect("an answer");
    assert_eq!(renewed, RenewalResult::default(), "all are wanted");
    let of_failing = |row: &&CommandRow| row.execution == fails[0];
    let mut failing = rows.iter().filter(of_failing);
    let (first, second) = (failing.next().expect("a command"), failing.next().expect("another"));
    let mut failed = report(first.execution, first, "command.failed");
    failed.payload = Some(json!({
        "command_id": first.id.get(), "error": {"kind": "tool_error", "message": "no"}
    }));
    one.remote.reports.record(&tenant, failed).await.expect("a report");
    let renewed = other.remote.leasing.renew(&tenant, &None, "w", &ids).await.expect("an answer");
    assert_eq!(renewed, RenewalResult { cancel: vec![second.id], lost: vec![first.id] });
    other.journal.executions.cancel(&tenant, fails[1], None).await.expect("a cancel");
    let rest: Vec<CommandId> =
        rows.iter().filter(|row| row.execution == fails[1]).map(|row| row.id).collect();
    let renewed = one.remote.leasing.renew(&tenant, &None, "w", &rest).await.expect("an answer");
    assert_eq!(renewed, RenewalResult { cancel: rest, lost: Vec::new() });
    verify(&database, &*store, fails[1]).await;
    one.close().await;
    other.close().await;
}

/// Registers documents of one path through two replicas at once, and returns the sorted versions.
async fn registered_at_once(
    [one, other]: [&Arc<ControlPlane>; 2],
    text: impl Fn(usize) -> String,
    times: usize,
) -> Vec<u32> {
    let mut registering = tokio::task::JoinSet::new();
    for n in 0..times {
        let control = if n % 2 == 0 { one.clone() } else { other.clone() };
        let text = text(n);
        registering.spawn(async move {
            let tenant = Tenant::default();
            let registered = control.catalog.register(&tenant, text, "playbook", false).await;
            registered.expect("a version").0.version
        });
    }
    let mut versions = registering.join_all().await;
    versions.sort_unstable();
    versions
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_registrations_through_two_replicas_create_consecutive_versions() {
    let database = migrated_database();
    let (one, _) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let versions = registered_at_once([&one, &other], |_| fan(1), 20).await;
    assert_eq!(versions, (1..=20).collect::<Vec<u32>>());
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_registered_concurrently_through_two_replicas_has_the_newest_version() {
    let database = migrated_database();
    let (one, _) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let text = |n: usize| {
        format!(
            "apiVersion: noetl.io/v1\nkind: Schedule\nmetadata: {{name: n, path: sched/n}}\n\
             spec: {{playbook: a/b{n}, every: 1h, enabled: false}}\n"
        )
    };
    for _ in 0..5 {
        registered_at_once([&one, &other], text, 8).await;
        let newest = one.catalog.entry_at(&tenant, "sched/n", None).await.expect("a read");
        let newest = newest.expect("an entry").content;
        let rows = other.triggers.schedules.list(&tenant).await.expect("a list");
        assert_eq!(rows.len(), 1);
        let playbook = format!("playbook: {},", rows[0].schedule.path);
        assert!(newest.contains(&playbook), "{playbook} is not that of {newest}");
    }
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_worker_polling_two_replicas_concurrently_gets_both_leases() {
    let database = migrated_database();
    let (one, _) = replica(&database.url(), 1).await;
    let (other, _) = replica(&database.url(), 2).await;
    let tenant = Tenant::default();
    let registered = one.catalog.register(&tenant, fan(1), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    for round in 0..20 {
        for _ in 0..8 {
            let request = StartRequest { catalog, ..StartRequest::default() };
            one.journal.executions.start(&tenant, request).await.expect("a start");
        }
        // Another process under this name: it loses the old leases and none of its own.
        let asks = |control: Arc<ControlPlane>| {
            let request = LongPoll {
                worker: "w".to_owned(),
                pool: None,
                kinds: None,
                max: 4,
                wait: Duration::ZERO,
                public_key: Some(format!("key-{round}")),
            };
            let tenant = Tenant::default();
            async move {
                control.remote.leasing.lease(&tenant, &None, request).await.expect("an answer")
            }
        };
        let (first, second) =
            tokio::join!(tokio::spawn(asks(one.clone())), tokio::spawn(asks(other.clone())));
        let leased = first.expect("no panic").into_iter().chain(second.expect("no panic"));
        let ids: Vec<CommandId> = leased.map(|leased| leased.row.id).collect();
        assert!(!ids.is_empty());
        one.remote.leasing.expire_overdue().await.expect("a look");
        let renewed =
            other.remote.leasing.renew(&tenant, &None, "w", &ids).await.expect("an answer");
        assert_eq!(renewed, RenewalResult::default(), "round {round}");
    }
    one.close().await;
    other.close().await;
}

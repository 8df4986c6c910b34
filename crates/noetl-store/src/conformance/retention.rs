//! Cases about retention. Stories happen in 2024, which is in the past for every store's clock;
//! times in the distant future represent recent rows.

use std::sync::Arc;

use noetl_model::event::ImportedEvent;
use noetl_model::{
    EventId, ExecutionId, ResultId, Seq, Snowflakes, SubscriptionId, Tenant, Timestamp,
};
use serde_json::json;

use super::due::{due, with};
use super::keychain::entry;
use super::references::{digests, references};
use super::results::result;
use super::story::{Story, commit, completed, done, issued, log, said, started, write};
use super::subscriptions::{new, reserve, stamp};
use super::transient::variable;
use crate::retention::{PurgeCounts, PurgeReport, RetentionPolicy, RetentionWindow};
use crate::{
    Append, Committed, DedupOutcome, EventStamp, ExecutionFilter, Import, KeychainScope,
    NewKeychainEntry, NewVariable, Snapshot, Store, SubscriptionAction, SubscriptionState,
};

const FAR_AHEAD: Timestamp = Timestamp::from_millis(4_000_000_000_000);
const LONG_AGO: Timestamp = Timestamp::from_micros(1);

pub async fn a_finished_execution_is_purged_completely(store: Arc<dyn Store>) {
    let (mut gone, mut stays) = (Story::new(10).of("acme"), Story::new(11).of("acme"));
    furnish(&*store, &mut gone).await;
    furnish(&*store, &mut stays).await;
    write(&*store, gone.then(vec![done()])).await;
    let before = read_all(&*store, &stays).await;
    let report = purge(&*store, &days_of_executions()).await;
    let removed = PurgeCounts {
        executions: 1,
        events: 5,
        commands: 1,
        snapshots: 2,
        references: 3,
        variables: 1,
        results: 1,
        keychain: 1,
        ..PurgeCounts::default()
    };
    assert_eq!(report.removed, removed);
    assert!(log(&*store, gone.id()).await.is_empty());
    assert_eq!(store.execution(&gone.tenant, gone.id()).await.expect("a read"), None);
    assert_eq!(store.tenant_of(gone.id()).await.expect("a read"), None);
    assert_eq!(store.command(gone.command_at(3)).await.expect("a read"), None);
    assert_eq!(read_all(&*store, &gone).await, nothing());
    // Shared entries stay, and so does all data of the execution that has not ended.
    let shared = store.keychain_entry(&gone.tenant, "10/shared").await.expect("a read");
    assert!(shared.is_some());
    assert_eq!(read_all(&*store, &stays).await, before);
    assert_eq!(log(&*store, stays.id()).await.len(), 4);
    assert!(store.command(stays.command_at(3)).await.expect("a read").is_some());
    assert_eq!(listed(&*store, &gone.tenant).await, 1);
    // A second purge removes nothing.
    assert_eq!(purge(&*store, &days_of_executions()).await.removed, PurgeCounts::default());
}

pub async fn an_unfinished_execution_is_not_purged_at_any_age(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let ended = vec![completed(story.command_at(3)), issued("b")];
    write(&*store, story.then(ended)).await;
    let policy = RetentionPolicy { commands: shortest(), ..days_of_executions() };
    let report = purge(&*store, &policy).await;
    assert_eq!(report.removed, PurgeCounts::default());
    assert_eq!(reasons(&report), ["1 execution is unfinished"]);
    assert!(report.kept[0].partition.starts_with("event_"), "{}", report.kept[0].partition);
    assert_eq!(log(&*store, story.id()).await.len(), 5);
    // The execution continues.
    write(&*store, story.then(vec![done()])).await;
}

pub async fn an_execution_with_a_recent_event_stays(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![done()])).await;
    // A late report starts the window again.
    story.row.updated_at = FAR_AHEAD;
    write(&*store, story.then(vec![said("late")])).await;
    let report = purge(&*store, &days_of_executions()).await;
    assert_eq!(report.removed, PurgeCounts::default());
    assert_eq!(reasons(&report), ["1 execution has events within the window"]);
    assert_eq!(log(&*store, story.id()).await.len(), 5);
}

pub async fn an_execution_with_a_timer_is_not_purged(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, with(story.then(vec![done()]), vec![due(1, 0)], &[])).await;
    let report = purge(&*store, &days_of_executions()).await;
    assert_eq!(report.removed, PurgeCounts::default());
    assert_eq!(reasons(&report), ["1 execution waits for a delivery"]);
    store.delete_timers(&[due(1, 0).id]).await.expect("done");
    let report = purge(&*store, &days_of_executions()).await;
    assert_eq!(report.removed.executions, 1);
    assert_eq!(reasons(&report), [] as [&str; 0]);
}

pub async fn an_imported_execution_is_purged_by_age_ended_or_not(store: Arc<dyn Store>) {
    let row = |execution, event, at| Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(execution),
        event: EventId::new(event),
        at,
        row: ImportedEvent::default(),
    };
    let rows = vec![row(10, 1, LONG_AGO), row(10, 2, LONG_AGO), row(11, 1, FAR_AHEAD)];
    store.import(rows).await.expect("an import");
    let report = purge(&*store, &days_of_executions()).await;
    assert_eq!((report.removed.executions, report.removed.events), (1, 2));
    assert!(log(&*store, ExecutionId::new(10)).await.is_empty());
    assert_eq!(log(&*store, ExecutionId::new(11)).await.len(), 1);
}

pub async fn a_policy_without_windows_removes_nothing(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    furnish(&*store, &mut story).await;
    write(&*store, story.then(vec![done()])).await;
    let expired = NewVariable { expires_at: Some(LONG_AGO), ..variable("expired") };
    store.put_variables(&story.tenant, story.id(), vec![expired]).await.expect("kept");
    let before = read_all(&*store, &story).await;
    assert_eq!(purge(&*store, &RetentionPolicy::KEEP).await, PurgeReport::default());
    assert_eq!(read_all(&*store, &story).await, before);
    assert_eq!(log(&*store, story.id()).await.len(), 5);
    assert!(store.command(story.command_at(3)).await.expect("a read").is_some());
    assert_eq!(store.purge_variables(9).await.expect("a count"), 1, "it was not touched");
}

pub async fn a_dry_run_changes_nothing_and_reports_the_same(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    for id in [10, 11, 12] {
        let mut story = Story::new(id);
        furnish(&*store, &mut story).await;
        let expired = NewVariable { expires_at: Some(LONG_AGO), ..variable("expired") };
        store.put_variables(&tenant, story.id(), vec![expired]).await.expect("kept");
        if id < 12 {
            let ended = vec![completed(story.command_at(3)), done()];
            write(&*store, story.then(ended)).await;
        }
    }
    let (story, command) = (Story::new(10), Story::new(10).command_at(3));
    let before = read_all(&*store, &story).await;
    // Rows that are removed by their own age and with their execution are counted once.
    let policy = RetentionPolicy { commands: shortest(), expired: true, ..days_of_executions() };
    let said = store.purge(&policy, true).await.expect("a report");
    assert_eq!(said.removed.executions, 2);
    assert_eq!((said.removed.commands, said.removed.variables), (2, 5));
    assert_eq!(store.purge(&policy, true).await.expect("a report"), said);
    assert_eq!(log(&*store, story.id()).await.len(), 6);
    assert_eq!(read_all(&*store, &story).await, before);
    assert!(store.command(command).await.expect("a read").is_some());
    assert_eq!(purge(&*store, &policy).await, said);
    assert!(log(&*store, story.id()).await.is_empty());
}

pub async fn commands_of_finished_executions_are_purged_by_their_own_age(store: Arc<dyn Store>) {
    let (mut ended, mut runs) = (Story::new(10), Story::new(11));
    for story in [&mut ended, &mut runs] {
        write(&*store, story.start()).await;
        write(&*store, story.then(vec![completed(story.command_at(3)), issued("b")])).await;
    }
    write(&*store, ended.then(vec![completed(ended.command_at(5)), done()])).await;
    let policy = RetentionPolicy { commands: shortest(), ..RetentionPolicy::KEEP };
    let report = purge(&*store, &policy).await;
    assert_eq!(report.removed, PurgeCounts { commands: 2, ..PurgeCounts::default() });
    for place in [3, 5] {
        assert_eq!(store.command(ended.command_at(place)).await.expect("a read"), None);
        let kept = store.command(runs.command_at(place)).await.expect("a read");
        assert!(kept.is_some(), "of an execution that has not ended");
    }
    assert_eq!(log(&*store, ended.id()).await.len(), 7, "the log stays");
}

pub async fn a_subscription_survives_every_purge(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let row = store.register_subscription(&tenant, new(1, "sub/a")).await.expect("a row");
    let (from, action) = (SubscriptionState::Registered, SubscriptionAction::Activate);
    store
        .transition(&tenant, row.id, from, action, stamp())
        .await
        .expect("an answer")
        .expect("active");
    let hour = std::time::Duration::from_secs(3600);
    assert_eq!(reserve(&*store, &tenant, 1, "k", 10, hour).await, DedupOutcome::New);
    let policy = RetentionPolicy { dedup: shortest(), ..days_of_executions() };
    let report = purge(&*store, &policy).await;
    assert_eq!(report.removed, PurgeCounts::default());
    assert_eq!(reasons(&report), ["1 subscription keeps its log"]);
    assert_eq!(log(&*store, ExecutionId::new(1)).await.len(), 2);
    let found = store.subscription(&tenant, SubscriptionId::new(1)).await.expect("a read");
    assert_eq!(found.expect("it is there").state, SubscriptionState::Active);
    let known = DedupOutcome::Known(ExecutionId::new(10));
    assert_eq!(reserve(&*store, &tenant, 1, "k", 11, hour).await, known);
}

pub async fn the_log_of_a_subscription_is_purged_when_it_has_ended(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let (id, of) = (SubscriptionId::new(1), ExecutionId::new(1));
    store.register_subscription(&tenant, new(1, "sub/a")).await.expect("a row");
    let (from, action) = (SubscriptionState::Registered, SubscriptionAction::Deactivate);
    let recent = EventStamp { at: FAR_AHEAD, ..stamp() };
    store.transition(&tenant, id, from, action, recent).await.expect("an answer").expect("over");
    assert_eq!(purge(&*store, &days_of_executions()).await.removed, PurgeCounts::default());
    let from = SubscriptionState::Deactivated;
    store.transition(&tenant, id, from, action, stamp()).await.expect("an answer").expect("over");
    let removed = PurgeCounts { events: 3, ..PurgeCounts::default() };
    let dry = store.purge(&days_of_executions(), true).await.expect("a report");
    assert_eq!(dry.removed, removed);
    assert_eq!(log(&*store, of).await.len(), 3);
    let report = purge(&*store, &days_of_executions()).await;
    assert_eq!((report.removed, report.kept), (removed, Vec::new()));
    assert_eq!(report.dropped, dry.dropped);
    assert_eq!(report.dropped.len(), 1, "{:?}", report.dropped);
    assert_eq!(log(&*store, of).await, []);
    let again = purge(&*store, &days_of_executions()).await;
    assert_eq!((again.removed, again.dropped), (PurgeCounts::default(), Vec::new()));
    // The row of the subscription stays, and its sequence numbers continue.
    let action = SubscriptionAction::Activate;
    store.transition(&tenant, id, from, action, stamp()).await.expect("an answer").expect("back");
    assert_eq!(log(&*store, of).await[0].seq, Seq(4));
}

pub async fn a_partition_with_live_executions_is_not_dropped(store: Arc<dyn Store>) {
    let execution = ExecutionId::new(Snowflakes::first_at(FAR_AHEAD));
    let row = Import {
        tenant: Tenant::default(),
        execution,
        event: EventId::new(1),
        at: LONG_AGO,
        row: ImportedEvent::default(),
    };
    store.import(vec![row]).await.expect("an import");
    for dry_run in [true, false] {
        let report = store.purge(&days_of_executions(), dry_run).await.expect("a report");
        assert_eq!((report.removed.executions, report.removed.events), (1, 1));
        assert_eq!((report.dropped, report.kept), (Vec::new(), Vec::new()));
    }
}

pub async fn an_append_to_a_purged_log_conflicts_at_the_start(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![done()])).await;
    let newest = store.newest_id().await.expect("a read");
    assert_eq!(newest, Some(story.event_at(4)));
    purge(&*store, &days_of_executions()).await;
    assert_eq!(store.newest_id().await.expect("a read"), newest, "it never goes back");
    let late = commit(&*store, story.then(vec![said("late")])).await;
    assert_eq!(late, Committed::Conflict { found: Seq::START });
    // The ID can be used again, as if the execution had never existed.
    let mut again = Story::new(10);
    write(&*store, again.then(vec![started()])).await;
    assert_eq!(log(&*store, again.id()).await.len(), 1);
}

pub async fn events_of_purged_executions_are_still_published(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![done()])).await;
    let policy = RetentionPolicy { outbox: shortest(), ..days_of_executions() };
    let removed = purge(&*store, &policy).await.removed;
    assert_eq!((removed.executions, removed.outbox), (1, 0));
    assert_eq!(store.claim(10).await.expect("a claim").len(), 4);
}

pub async fn one_purge_removes_many_executions_and_long_logs(store: Arc<dyn Store>) {
    // More executions than one page and more rows than one batch contain.
    let mut long = Story::new(1);
    write(&*store, long.start()).await;
    for _ in 0..5 {
        write(&*store, long.then((0..499).map(|_| said("again")).collect())).await;
    }
    write(&*store, long.then(vec![done()])).await;
    let batch: Vec<Append> =
        (10..1210).map(|id| Story::new(id).then(vec![started(), done()])).collect();
    for outcome in store.commit(batch).await.expect("a commit") {
        assert_eq!(outcome, Committed::Appended);
    }
    let mut last = Story::new(2000);
    write(&*store, last.start()).await;
    let said = store.purge(&days_of_executions(), true).await.expect("a report");
    let report = purge(&*store, &days_of_executions()).await;
    assert_eq!(report, said);
    assert_eq!((report.removed.executions, report.removed.events), (1201, 3 + 2495 + 1 + 2400));
    assert!(log(&*store, long.id()).await.is_empty());
    assert_eq!(listed(&*store, &last.tenant).await, 1);
}

/// Removes every execution that has ended, whenever it ended.
pub(super) async fn purge_everything_finished(store: &dyn Store) {
    let report = purge(store, &days_of_executions()).await;
    assert!(report.removed.executions > 0);
}

pub(super) fn days_of_executions() -> RetentionPolicy {
    RetentionPolicy {
        executions: RetentionWindow::days("days", 1).expect("in range"),
        ..RetentionPolicy::KEEP
    }
}

/// Returns the shortest possible window.
pub(super) fn shortest() -> RetentionWindow {
    RetentionWindow::minutes("minutes", 1).expect("in range")
}

async fn purge(store: &dyn Store, policy: &RetentionPolicy) -> PurgeReport {
    store.purge(policy, false).await.expect("a report")
}

async fn listed(store: &dyn Store, tenant: &Tenant) -> usize {
    let filter = ExecutionFilter { limit: 9, ..ExecutionFilter::default() };
    store.executions(tenant, &filter).await.expect("a list").len()
}

fn reasons(report: &PurgeReport) -> Vec<&str> {
    report.kept.iter().map(|kept| kept.reason.as_str()).collect()
}

/// Starts an execution and adds a row to every table with rows of executions.
async fn furnish(store: &dyn Store, story: &mut Story) {
    let (tenant, id) = (story.tenant.clone(), story.id());
    write(store, Append { blobs: digests().to_vec(), ..story.start() }).await;
    write(store, story.then(vec![said("something")])).await;
    let snapshot = || Snapshot::new(4, "{}".into(), json!({}));
    for (of, aggregate) in snapshots(id) {
        store.save(&tenant, of, &aggregate, snapshot()).await.expect("kept");
    }
    // Snapshot of another execution, whose ID starts with the same digits.
    store
        .save(&tenant, "replay_state", &format!("execution/{id}0/a"), snapshot())
        .await
        .expect("kept");
    store.put_variables(&tenant, id, vec![variable("v")]).await.expect("kept");
    store.put_result(&tenant, result(id.get(), id.get(), "r")).await.expect("kept");
    for (name, scope) in [("local", KeychainScope::Local), ("shared", KeychainScope::Shared)] {
        let cache_key = format!("{id}/{name}");
        let kept = NewKeychainEntry { scope, execution: Some(id), ..entry(&cache_key) };
        store.put_keychain_entry(&tenant, kept).await.expect("kept");
    }
}

fn snapshots(id: ExecutionId) -> [(&'static str, String); 2] {
    [("engine_state", id.to_string()), ("replay_state", format!("execution/{id}/summary"))]
}

/// Returns the numbers of an execution's rows: snapshots, references, variables, results, and its
/// own secrets.
async fn read_all(store: &dyn Store, story: &Story) -> [usize; 5] {
    let (tenant, id) = (&story.tenant, story.id());
    let mut kept = 0;
    for (of, aggregate) in snapshots(id) {
        kept +=
            usize::from(store.snapshot(tenant, of, &aggregate).await.expect("a read").is_some());
    }
    let other = store.snapshot(tenant, "replay_state", &format!("execution/{id}0/a")).await;
    assert!(other.expect("a read").is_some(), "a snapshot of another execution");
    let results = store.results(tenant, id, ResultId::new(0), 9).await.expect("a list");
    let local = store.keychain_entry(tenant, &format!("{id}/local")).await.expect("a read");
    [
        kept,
        references(store, id.get()).await.len(),
        store.variables(tenant, id).await.expect("a list").len(),
        results.len(),
        usize::from(local.is_some()),
    ]
}

fn nothing() -> [usize; 5] {
    [0; 5]
}

//! Scheduled runs, with a clock that the test advances.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options};
use noetl_model::{Clock, ExecutionId, Fact, ScheduleId, Seq, Tenant, Timestamp, Value};
use noetl_store::{
    ExecutionFilter, ExecutionRow, ExecutionStatus, MemoryStore, NewSchedule, ScheduleRow, Store,
    StoreClock,
};
use noetl_test_app::SimClock;
use noetl_triggers::{ScheduleError, ScheduleSpec};
use serde_json::json;

const PLAYBOOK: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: job, path: jobs/a}\nworkflow:\n  - step: start\n    tool: {kind: shell, cmds: ['true']}\n";

/// Control planes on one store, whose clock is the test's. No worker takes what they start.
struct Place {
    store: Arc<dyn Store>,
    clock: Arc<SimClock>,
    control: ControlPlane,
    tenant: Tenant,
}

async fn control(store: &Arc<dyn Store>, clock: &Arc<SimClock>) -> ControlPlane {
    // The test starts what is due itself, so that it knows when that was.
    let options = Options { slots: 0, schedules: false, ..Options::default() };
    ControlPlane::open(options, store.clone(), clock.clone()).await.unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl Place {
    fn at(start: &str) -> impl Future<Output = Self> + use<> {
        let clock = Arc::new(SimClock::starting_at(at(start)));
        // Boxed: a control plane in a future makes it large.
        Box::pin(async move {
            let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
            let store: Arc<dyn Store> = Arc::new(store);
            let control = control(&store, &clock).await;
            let tenant = Tenant::default();
            let text = PLAYBOOK.to_owned();
            control.catalog.register(&tenant, text, "playbook", false).await.unwrap();
            Self { store, clock, control, tenant }
        })
    }

    async fn make(&self, spec: Value) -> ScheduleRow {
        let mut spec = spec.as_object().unwrap().clone();
        spec.entry("playbook").or_insert_with(|| json!("jobs/a"));
        let wanted = ScheduleSpec { name: Some("test".into()), spec };
        self.control.triggers.schedules.create(&self.tenant, wanted).await.unwrap()
    }

    async fn row(&self, id: ScheduleId) -> ScheduleRow {
        self.control.triggers.schedules.get(&self.tenant, id).await.unwrap()
    }

    /// Starts what is due until there is nothing to do.
    async fn settle(&self) {
        while self.control.triggers.schedules.start_due().await.unwrap().is_zero() {}
    }

    /// Moves the clock and starts what is due.
    async fn pass(&self, by: Duration) {
        self.clock.advance(by);
        self.settle().await;
    }

    async fn runs(&self, id: ScheduleId) -> Vec<ExecutionRow> {
        let parent = Some(ExecutionId::new(id.get()));
        let filter = ExecutionFilter { parent, limit: 100_000, ..ExecutionFilter::default() };
        self.store.executions(&self.tenant, &filter).await.unwrap()
    }

    /// Returns the due times of all runs, oldest first.
    async fn dues(&self, id: ScheduleId) -> Vec<String> {
        let mut dues = Vec::new();
        for run in self.runs(id).await {
            let first = self.store.read(run.id, Seq::START, 1).await.unwrap().remove(0);
            let Fact::PlaybookStarted(started) = first.fact else { panic!("{first:?}") };
            dues.push(started.workload["schedule"]["due_at"].as_str().unwrap().to_owned());
        }
        dues.sort();
        dues
    }

    async fn close(&self) {
        self.control.close().await;
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn every_scheduled_run_is_one_execution_and_the_next_is_shown() {
    let place = Place::at("2026-01-01T00:00:30Z").await;
    let made = place.make(json!({"cron": "*/5 * * * *", "payload": {"a": 1}})).await;
    let id = made.schedule.id;
    assert_eq!(made.schedule.next_run_at, Some(at("2026-01-01T00:05:00Z")));
    place.settle().await;
    assert_eq!(place.runs(id).await.len(), 0);
    place.pass(5 * MINUTE).await;
    place.settle().await;
    assert_eq!(place.dues(id).await, ["2026-01-01T00:05:00Z"]);
    let row = place.row(id).await;
    assert_eq!(row.schedule.next_run_at, Some(at("2026-01-01T00:10:00Z")));
    assert_eq!(row.last_run_at, Some(at("2026-01-01T00:05:00Z")));
    assert_eq!((row.last_status.as_deref(), row.run), (Some("started"), None));
    place.pass(5 * MINUTE).await;
    assert_eq!(place.runs(id).await.len(), 2);
    place.close().await;
}

#[tokio::test]
async fn changed_clocks_lose_and_repeat_no_scheduled_run() {
    for (zone, forward, back) in [
        ("Europe/Berlin", "2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"),
        ("America/New_York", "2026-03-07T12:00:00Z", "2026-10-31T12:00:00Z"),
    ] {
        for from in [forward, back] {
            let place = Place::at(from).await;
            let daily = place.make(json!({"cron": "30 2 * * *", "timezone": zone})).await;
            let hourly = place.make(json!({"cron": "30 * * * *", "timezone": zone})).await;
            for _ in 0..(48 * 12) {
                place.pass(5 * MINUTE).await;
            }
            let dues = place.dues(daily.schedule.id).await;
            assert_eq!(dues.len(), 2, "{zone} {from}: {dues:?}");
            // An hour is an hour, whatever clocks show.
            let dues = place.dues(hourly.schedule.id).await;
            assert_eq!(dues.len(), 48, "{zone} {from}: {dues:?}");
            place.close().await;
        }
    }
}

#[tokio::test]
async fn a_schedule_for_february_29_runs_in_leap_years() {
    let place = Place::at("2027-12-31T00:00:00Z").await;
    let id = place.make(json!({"cron": "0 12 29 2 *"})).await.schedule.id;
    place.pass(70 * 24 * HOUR).await;
    assert_eq!(place.dues(id).await, ["2028-02-29T12:00:00Z"]);
    let next = place.row(id).await.schedule.next_run_at;
    assert_eq!(next, Some(at("2032-02-29T12:00:00Z")));
    place.close().await;
}

#[tokio::test]
async fn runs_missed_during_an_hour_are_started_as_configured() {
    for (missed, expected) in [("skip", 0), ("one", 1), ("all", 3600)] {
        let place = Place::at("2026-01-01T00:00:00Z").await;
        let id = place.make(json!({"every": 1, "missed": missed})).await.schedule.id;
        place.pass(HOUR).await;
        let dues = place.dues(id).await;
        assert_eq!(dues.len(), expected, "{missed}");
        assert!(dues.is_sorted_by(|one, other| one < other), "{missed}: no tick twice");
        let row = place.row(id).await;
        assert_eq!(row.schedule.next_run_at, Some(at("2026-01-01T01:00:01Z")), "{missed}");
        let status = if missed == "skip" { "skipped_missed" } else { "started" };
        assert_eq!(row.last_status.as_deref(), Some(status), "{missed}");
        // From there on it goes as it always does.
        place.pass(Duration::from_secs(1)).await;
        assert_eq!(place.runs(id).await.len(), expected + 1, "{missed}");
        place.close().await;
    }
}

#[tokio::test]
async fn a_run_late_by_less_than_the_tolerance_is_not_missed() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let id = place.make(json!({"cron": "0 * * * *", "missed": "skip"})).await.schedule.id;
    place.pass(HOUR + Duration::from_secs(59)).await;
    assert_eq!(place.runs(id).await.len(), 1);
    place.pass(HOUR + Duration::from_secs(2)).await;
    assert_eq!(place.runs(id).await.len(), 1, "61 s are");
    place.close().await;
}

#[tokio::test]
async fn a_one_time_schedule_runs_once() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let soon = place.make(json!({"at": "2026-01-01T02:00:00+01:00"})).await.schedule.id;
    let late = place.make(json!({"at": "2025-12-31T00:00:00Z"})).await.schedule.id;
    let skipped = place.make(json!({"at": "2025-12-31T00:00:00Z", "missed": "skip"})).await;
    place.settle().await;
    assert_eq!((place.runs(soon).await.len(), place.runs(late).await.len()), (0, 1));
    place.pass(HOUR).await;
    assert_eq!(place.dues(soon).await, ["2026-01-01T01:00:00Z"]);
    place.pass(24 * HOUR).await;
    assert_eq!((place.runs(soon).await.len(), place.runs(late).await.len()), (1, 1));
    assert_eq!(place.row(soon).await.schedule.next_run_at, None);
    let row = place.row(skipped.schedule.id).await;
    assert_eq!(row.last_status.as_deref(), Some("skipped_missed"));
    // Letting it rest and go on makes it run no second time.
    for is_enabled in [false, true] {
        place.control.triggers.schedules.enable(&place.tenant, soon, is_enabled).await.unwrap();
    }
    place.pass(HOUR).await;
    assert_eq!(place.runs(soon).await.len(), 1);
    place.close().await;
}

async fn statuses(place: &Place, id: ScheduleId) -> Vec<ExecutionStatus> {
    let mut runs = place.runs(id).await;
    runs.sort_by_key(|run| run.id);
    runs.into_iter().map(|run| run.status).collect()
}

#[tokio::test]
async fn overlapping_runs_follow_the_policy() {
    use ExecutionStatus::{Cancelled, Running};
    for (overlap, expected) in [
        ("allow", vec![Running, Running, Running]),
        ("skip", vec![Running]),
        ("queue", vec![Running]),
        ("cancel_previous", vec![Cancelled, Cancelled, Running]),
    ] {
        let place = Place::at("2026-01-01T00:00:00Z").await;
        let id = place.make(json!({"every": 60, "overlap": overlap})).await.schedule.id;
        for _ in 0..3 {
            place.pass(MINUTE).await;
        }
        assert_eq!(statuses(&place, id).await, expected, "{overlap}");
        let row = place.row(id).await;
        let next = if overlap == "queue" { "00:02:00" } else { "00:04:00" };
        let next = at(&format!("2026-01-01T{next}Z"));
        assert_eq!(row.schedule.next_run_at, Some(next), "{overlap}: what waits is due");
        let status = if overlap == "skip" { "skipped_overlap" } else { "started" };
        assert_eq!(row.last_status.as_deref(), Some(status), "{overlap}");
        let counted = |outcome| {
            place.control.journal.metrics.schedule_runs.with_label_values(&[outcome]).get()
        };
        let runs = (counted("started"), counted("skipped_overlap"));
        let expected_runs = match overlap {
            "skip" => (1, 2),
            "queue" => (1, 0),
            _ => (3, 0),
        };
        assert_eq!(runs, expected_runs, "{overlap}");
        // The queued run starts after the first has ended.
        let first = place.runs(id).await.into_iter().map(|run| run.id).min().unwrap();
        let _ = place.control.journal.executions.cancel(&place.tenant, first, None).await;
        place.settle().await;
        if overlap == "queue" {
            assert_eq!(statuses(&place, id).await, [Cancelled, Running]);
            assert_eq!(place.dues(id).await[1], "2026-01-01T00:02:00Z");
        }
        place.close().await;
    }
}

#[tokio::test]
async fn a_queued_run_is_never_missed() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let spec = json!({"every": 60, "overlap": "queue", "missed": "skip"});
    let id = place.make(spec).await.schedule.id;
    place.pass(MINUTE).await;
    place.pass(MINUTE).await;
    place.pass(2 * HOUR).await;
    let first = place.runs(id).await.remove(0).id;
    place.control.journal.executions.cancel(&place.tenant, first, None).await.unwrap();
    place.settle().await;
    assert_eq!(place.dues(id).await[1], "2026-01-01T00:02:00Z");
    place.close().await;
}

#[tokio::test]
async fn an_abandoned_run_with_a_fixed_id_is_resumed() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let row = place.make(json!({"every": 60})).await;
    let (id, due) = (row.schedule.id, row.schedule.next_run_at.unwrap());
    place.clock.advance(MINUTE);
    // Killed after it fixed the run.
    let left = ExecutionId::new(4711);
    let fixed = place.store.fix_run(&place.tenant, id, due, left).await.unwrap();
    assert_eq!(fixed, Some(left));
    place.settle().await;
    let runs: Vec<ExecutionId> = place.runs(id).await.into_iter().map(|run| run.id).collect();
    assert_eq!(runs, [left]);
    // Killed after it started the run: the row is as it was then.
    for overlap in ["allow", "skip", "queue", "cancel_previous"] {
        let mut schedule = row.schedule.clone();
        schedule.meta = Some(json!({"overlap": overlap}));
        place.store.remove_schedule(&place.tenant, id).await.unwrap();
        place.store.put_schedule(&place.tenant, schedule).await.unwrap();
        place.store.fix_run(&place.tenant, id, due, left).await.unwrap();
        place.settle().await;
        assert_eq!(statuses(&place, id).await, [ExecutionStatus::Running], "{overlap}");
        let after = place.row(id).await;
        assert_eq!((after.last_status.as_deref(), after.run), (Some("started"), None), "{overlap}");
    }
    place.close().await;
}

#[tokio::test]
async fn an_outdated_schedule_row_repeats_no_run() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let row = place.make(json!({"every": 60})).await;
    place.pass(MINUTE).await;
    // Another process writes the row that it read before that run.
    place.store.put_schedule(&place.tenant, row.schedule.clone()).await.unwrap();
    place.settle().await;
    assert_eq!(place.runs(row.schedule.id).await.len(), 1);
    let next = place.row(row.schedule.id).await.schedule.next_run_at;
    assert_eq!(next, Some(at("2026-01-01T00:02:00Z")));
    place.close().await;
}

#[tokio::test]
async fn processes_killed_anywhere_start_every_scheduled_run_once() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let id = place.make(json!({"every": 1, "missed": "all"})).await.schedule.id;
    let mut others = Vec::new();
    for _ in 0..2 {
        others.push(Arc::new(control(&place.store, &place.clock).await));
    }
    place.clock.advance(Duration::from_secs(200));
    for round in 0..400_u32 {
        let mut tasks = Vec::new();
        for other in &others {
            let other = other.clone();
            tasks.push(tokio::spawn(async move {
                let _ = other.triggers.schedules.start_due().await;
            }));
        }
        // A task that is aborted ends at whatever it waited for.
        for _ in 0..(round % 23) {
            tokio::task::yield_now().await;
        }
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for task in tasks {
            let _ = task.await;
        }
    }
    place.settle().await;
    let dues = place.dues(id).await;
    assert_eq!(dues.len(), 200);
    assert!(dues.is_sorted_by(|one, other| one < other), "no tick twice");
    for other in others {
        other.close().await;
    }
    place.close().await;
}

#[tokio::test]
async fn a_failed_start_is_reported_and_the_schedule_continues() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let absent = place.make(json!({"every": 60, "playbook": "jobs/absent"})).await.schedule.id;
    let broken = NewSchedule {
        id: ScheduleId::new(7),
        path: "jobs/a".into(),
        version: None,
        cron: Some("whenever".into()),
        interval_seconds: None,
        is_enabled: true,
        timezone: None,
        payload: Some(json!([1])),
        meta: Some(json!("older")),
        next_run_at: Some(at("2026-01-01T00:01:00Z")),
    };
    place.store.put_schedule(&place.tenant, broken).await.unwrap();
    place.pass(MINUTE).await;
    let row = place.row(absent).await;
    assert_eq!(row.last_status.as_deref(), Some("failed: Playbook not found: jobs/absent"));
    assert_eq!(row.schedule.next_run_at, Some(at("2026-01-01T00:02:00Z")));
    let row = place.row(ScheduleId::new(7)).await;
    let expected = "failed: a cron expression has 5 fields, or 6 with seconds; this has 1";
    assert_eq!((row.last_status.as_deref(), row.schedule.next_run_at), (Some(expected), None));
    place.close().await;
}

#[tokio::test]
async fn a_paused_schedule_runs_nothing_and_misses_nothing() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let id = place.make(json!({"every": 60, "missed": "all"})).await.schedule.id;
    let enable =
        |is_enabled| place.control.triggers.schedules.enable(&place.tenant, id, is_enabled);
    enable(false).await.unwrap();
    place.pass(HOUR).await;
    assert_eq!(place.runs(id).await.len(), 0);
    let row = enable(true).await.unwrap();
    assert_eq!(row.schedule.next_run_at, Some(at("2026-01-01T01:01:00Z")));
    assert_eq!(enable(true).await.unwrap(), row, "once more changes nothing");
    place.pass(MINUTE).await;
    assert_eq!(place.runs(id).await.len(), 1);
    place.control.triggers.schedules.run_now(&place.tenant, id, None).await.unwrap();
    assert_eq!(place.runs(id).await.len(), 2);
    assert_eq!(place.row(id).await.last_run_at, Some(at("2026-01-01T01:01:00Z")));
    place.close().await;
}

async fn registered(place: &Place, spec: &str) {
    let text =
        format!("kind: Schedule\nmetadata: {{name: nightly, path: sched/a}}\nspec: {spec}\n");
    place.control.catalog.register(&place.tenant, text, "playbook", false).await.unwrap();
}

#[tokio::test]
async fn a_document_creates_changes_and_disables_its_schedule() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let all = || async { place.control.triggers.schedules.list(&place.tenant).await.unwrap() };
    registered(&place, "{playbook: jobs/a, cron: '0 * * * *'}").await;
    let made = all().await.remove(0);
    let id = made.schedule.id;
    assert_eq!(made.schedule.next_run_at, Some(at("2026-01-01T01:00:00Z")));
    // The same again, and a payload, leave its next run alone; and its rest.
    place.pass(HOUR).await;
    place.control.triggers.schedules.enable(&place.tenant, id, false).await.unwrap();
    registered(&place, "{playbook: jobs/a, cron: '0 * * * *', payload: {a: 1}}").await;
    let rows = all().await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].schedule.payload, Some(json!({"a": 1})));
    assert!(!rows[0].schedule.is_enabled);
    assert_eq!(rows[0].last_run_at, Some(at("2026-01-01T01:00:00Z")));
    registered(&place, "{playbook: jobs/a, every: 90s, enabled: true}").await;
    let row = place.row(id).await;
    assert_eq!((row.schedule.cron, row.schedule.interval_seconds), (None, Some(90)));
    assert_eq!(row.schedule.next_run_at, Some(at("2026-01-01T01:01:30Z")));
    // A schedule of a document is changed only through the document.
    let wanted = ScheduleSpec::default();
    let changed = place.control.triggers.schedules.change(&place.tenant, id, wanted).await;
    assert!(matches!(changed, Err(ScheduleError::OfDocument { .. })), "{changed:?}");
    let removed = place.control.triggers.schedules.remove(&place.tenant, id).await;
    assert!(matches!(removed, Err(ScheduleError::OfDocument { .. })), "{removed:?}");
    place.control.catalog.delete(&place.tenant, "sched/a", None).await.unwrap();
    assert_eq!(all().await, []);
    place.control.catalog.restore(&place.tenant, "sched/a", None).await.unwrap();
    assert_eq!(all().await[0].schedule.id, id);
    let other = PLAYBOOK.replace("jobs/a", "sched/a");
    place.control.catalog.register(&place.tenant, other, "playbook", false).await.unwrap();
    assert_eq!(all().await, [], "another kind of document is there now");
    let wrong =
        "kind: Schedule\nmetadata: {path: sched/b}\nspec: {playbook: jobs/a, cron: '61 * * * *'}";
    let refused = place.control.catalog.register(&place.tenant, wrong.into(), "playbook", false);
    assert!(refused.await.is_err());
    assert_eq!(all().await, []);
    place.close().await;
}

#[tokio::test]
async fn an_update_replaces_only_the_named_fields() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let spec = json!({"cron": "0 3 * * *", "timezone": "Europe/Berlin", "overlap": "skip"});
    let id = place.make(spec).await.schedule.id;
    let change = async |spec: Value| {
        let spec = spec.as_object().unwrap().clone();
        place
            .control
            .triggers
            .schedules
            .change(&place.tenant, id, ScheduleSpec { name: None, spec })
            .await
    };
    let row = change(json!({"timezone": "America/New_York"})).await.unwrap();
    assert_eq!(row.schedule.next_run_at, Some(at("2026-01-01T08:00:00Z")));
    let row = change(json!({"every": "5m", "payload": {"a": 1}})).await.unwrap();
    assert_eq!((&row.schedule.cron, row.schedule.interval_seconds), (&None, Some(300)));
    let meta = row.schedule.meta.clone().unwrap();
    assert_eq!((&meta["overlap"], &meta["name"]), (&json!("skip"), &json!("test")));
    place.clock.advance(Duration::from_secs(10));
    let row = change(json!({"payload": null})).await.unwrap();
    assert_eq!(
        (row.schedule.payload, row.schedule.next_run_at),
        (None, Some(at("2026-01-01T00:05:00Z")))
    );
    for wrong in
        [json!({"cron": "x"}), json!({"every": null}), json!({"overlap": 7}), json!({"payload": 7})]
    {
        let refused = change(wrong.clone()).await;
        assert!(matches!(refused, Err(ScheduleError::Invalid(_))), "{wrong}: {refused:?}");
    }
    assert_eq!(place.row(id).await.schedule.interval_seconds, Some(300));
    assert!(place.clock.now() > at("2026-01-01T00:00:00Z"));
    place.close().await;
}

#[tokio::test]
async fn an_idle_scheduler_polls_once_per_minute() {
    let place = Place::at("2026-01-01T00:00:00Z").await;
    let due = || async { place.control.triggers.schedules.start_due().await.unwrap() };
    assert_eq!(due().await, MINUTE);
    place.make(json!({"every": 30})).await;
    assert_eq!(due().await, Duration::from_secs(30), "when it is due, and not before");
    place.make(json!({"cron": "0 0 29 2 *"})).await;
    assert_eq!(due().await, Duration::from_secs(30));
    place.close().await;
}

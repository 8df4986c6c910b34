//! Cases about schedules.

use std::sync::Arc;

use noetl_model::{ExecutionId, ScheduleId, Tenant, Timestamp};
use serde_json::json;
use tokio::task::JoinSet;

use super::due::FUTURE;
use crate::{NewSchedule, ScheduleRow, Store};

pub async fn a_schedule_is_read_back_unchanged(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    let said = NewSchedule {
        version: Some(3),
        cron: Some("*/5 * * * *".into()),
        interval_seconds: Some(u32::MAX),
        timezone: Some("Europe/Berlin".into()),
        payload: Some(json!({"b": 1, "a": null})),
        meta: Some(json!(null)),
        ..schedule(2, Some(100))
    };
    let row = put(&*store, &mine, said.clone()).await;
    let expected = ScheduleRow {
        tenant: mine.clone(),
        schedule: said,
        run: None,
        last_run_at: None,
        last_status: None,
        created_at: row.created_at,
        updated_at: row.created_at,
    };
    assert_eq!(row, expected);
    assert_eq!(read(&*store, &mine, 2).await, Some(expected));
    assert_eq!(read(&*store, &theirs, 2).await, None);
    put(&*store, &mine, schedule(1, None)).await;
    put(&*store, &theirs, schedule(3, None)).await;
    let listed = store.schedules(&mine).await.expect("a list");
    assert_eq!(ids(&listed), [1, 2]);
}

pub async fn an_updated_schedule_retains_its_history(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    let first = put(&*store, &tenant, schedule(1, Some(100))).await;
    assert!(move_on(&*store, &tenant, 1, 100, Some(200)).await);
    fix(&*store, &tenant, 1, 200, 10).await.expect("a run");
    let said = NewSchedule { path: "demo/b".into(), ..schedule(1, Some(200)) };
    let again = put(&*store, &tenant, said.clone()).await;
    assert_eq!((&again.schedule, again.created_at), (&said, first.created_at));
    assert_eq!(again.run, Some(ExecutionId::new(10)), "the same run");
    assert_eq!(again.last_run_at, Some(at(100)));
    assert_eq!(again.last_status.as_deref(), Some("started"));
    for next in [Some(300), None] {
        let moved = put(&*store, &tenant, schedule(1, next)).await;
        assert_eq!(moved.run, None, "another run");
    }
}

pub async fn a_schedule_of_another_tenant_does_not_exist(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    let row = put(&*store, &theirs, schedule(1, Some(100))).await;
    let taken = store.put_schedule(&mine, schedule(1, Some(200))).await;
    assert!(taken.is_err(), "{taken:?}");
    assert_eq!(fix(&*store, &mine, 1, 100, 10).await, None);
    assert!(!move_on(&*store, &mine, 1, 100, None).await);
    let removed = store.remove_schedule(&mine, ScheduleId::new(1)).await;
    assert!(!removed.expect("an answer"));
    assert_eq!(read(&*store, &theirs, 1).await, Some(row));
}

pub async fn due_schedules_are_claimed_oldest_first(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    for (tenant, said) in [
        (&mine, schedule(4, Some(100))),
        (&theirs, schedule(3, Some(100))),
        (&mine, schedule(2, Some(50))),
        (&mine, schedule(1, Some(150))),
        (&mine, schedule(5, None)),
        (&mine, NewSchedule { next_run_at: Some(FUTURE), ..schedule(6, None) }),
        (&mine, NewSchedule { is_enabled: false, ..schedule(7, Some(10)) }),
    ] {
        put(&*store, tenant, said).await;
    }
    let ready = store.ready_schedules(10).await.expect("a list");
    assert_eq!(ids(&ready), [2, 3, 4, 1]);
    assert_eq!(ready[1].tenant, theirs);
    let ready = store.ready_schedules(2).await.expect("a list");
    assert_eq!(ids(&ready), [2, 3]);
    assert_eq!(store.ready_schedules(0).await.expect("a list"), []);
}

pub async fn the_next_run_time_ignores_disabled_schedules(store: Arc<dyn Store>) {
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));
    let next = async || store.next_schedule().await.expect("a read");
    assert_eq!(next().await, None);
    put(&*store, &mine, schedule(1, None)).await;
    put(&*store, &mine, NewSchedule { is_enabled: false, ..schedule(2, Some(10)) }).await;
    assert_eq!(next().await, None);
    put(&*store, &mine, NewSchedule { next_run_at: Some(FUTURE), ..schedule(3, None) }).await;
    assert_eq!(next().await, Some(FUTURE));
    put(&*store, &theirs, schedule(4, Some(100))).await;
    assert_eq!(next().await, Some(at(100)));
    assert!(move_on(&*store, &theirs, 4, 100, None).await);
    assert_eq!(next().await, Some(FUTURE));
}

pub async fn a_run_is_fixed_once_and_the_schedule_stays_ready(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    put(&*store, &tenant, schedule(1, Some(100))).await;
    assert_eq!(fix(&*store, &tenant, 1, 99, 10).await, None, "another run");
    assert_eq!(fix(&*store, &tenant, 2, 100, 10).await, None, "unknown");
    assert_eq!(fix(&*store, &tenant, 1, 100, 11).await, Some(11));
    assert_eq!(fix(&*store, &tenant, 1, 100, 12).await, Some(11));
    let ready = store.ready_schedules(10).await.expect("a list");
    assert_eq!(ready[0].run, Some(ExecutionId::new(11)));
    let off = NewSchedule { is_enabled: false, ..schedule(1, Some(100)) };
    put(&*store, &tenant, off).await;
    assert_eq!(fix(&*store, &tenant, 1, 100, 13).await, None, "not enabled");
}

pub async fn a_schedule_advances_once_per_run(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    put(&*store, &tenant, schedule(1, Some(100))).await;
    fix(&*store, &tenant, 1, 100, 10).await.expect("a run");
    assert!(!move_on(&*store, &tenant, 1, 99, Some(300)).await, "another run");
    assert!(move_on(&*store, &tenant, 1, 100, Some(200)).await);
    assert!(!move_on(&*store, &tenant, 1, 100, Some(300)).await, "it is past that");
    let row = read(&*store, &tenant, 1).await.expect("a schedule");
    assert_eq!(row.schedule.next_run_at, Some(at(200)));
    assert_eq!((row.run, row.last_run_at), (None, Some(at(100))));
    assert_eq!(row.last_status.as_deref(), Some("started"));
    assert!(move_on(&*store, &tenant, 1, 200, None).await);
    assert_eq!(store.ready_schedules(10).await.expect("a list"), []);
    assert_eq!(fix(&*store, &tenant, 1, 200, 11).await, None);
}

pub async fn a_removed_schedule_is_gone(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    put(&*store, &tenant, schedule(1, Some(100))).await;
    for is_known in [true, false] {
        let removed = store.remove_schedule(&tenant, ScheduleId::new(1)).await;
        assert_eq!(removed.expect("an answer"), is_known);
    }
    assert_eq!(read(&*store, &tenant, 1).await, None);
    assert_eq!(store.ready_schedules(10).await.expect("a list"), []);
}

pub async fn concurrent_runners_agree_on_a_run(store: Arc<dyn Store>) {
    let tenant = Tenant::default();
    put(&*store, &tenant, schedule(1, Some(100))).await;
    let mut tasks = JoinSet::new();
    for execution in 10..22 {
        let store = store.clone();
        tasks.spawn(async move {
            let tenant = Tenant::default();
            let fixed = fix(&*store, &tenant, 1, 100, execution).await;
            (fixed, move_on(&*store, &tenant, 1, 100, Some(200)).await)
        });
    }
    let answers = tasks.join_all().await;
    let mut runs: Vec<i64> = answers.iter().filter_map(|(fixed, _)| *fixed).collect();
    runs.dedup();
    assert_eq!(runs.len(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|(_, moved)| *moved).count(), 1);
}

/// Returns a schedule that runs at this time.
pub(super) fn schedule(id: i64, next: Option<i64>) -> NewSchedule {
    NewSchedule {
        id: ScheduleId::new(id),
        path: "demo/a".into(),
        version: None,
        cron: None,
        interval_seconds: None,
        is_enabled: true,
        timezone: None,
        payload: None,
        meta: None,
        next_run_at: next.map(at),
    }
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

async fn put(store: &dyn Store, tenant: &Tenant, said: NewSchedule) -> ScheduleRow {
    store.put_schedule(tenant, said).await.expect("a schedule")
}

async fn read(store: &dyn Store, tenant: &Tenant, id: i64) -> Option<ScheduleRow> {
    store.schedule(tenant, ScheduleId::new(id)).await.expect("a read")
}

async fn fix(store: &dyn Store, tenant: &Tenant, id: i64, due: i64, execution: i64) -> Option<i64> {
    let execution = ExecutionId::new(execution);
    let fixed = store.fix_run(tenant, ScheduleId::new(id), at(due), execution).await;
    fixed.expect("an answer").map(ExecutionId::get)
}

async fn move_on(store: &dyn Store, tenant: &Tenant, id: i64, due: i64, next: Option<i64>) -> bool {
    let id = ScheduleId::new(id);
    store.move_on(tenant, id, at(due), next.map(at), "started").await.expect("an answer")
}

fn ids(rows: &[ScheduleRow]) -> Vec<i64> {
    rows.iter().map(|row| row.schedule.id.get()).collect()
}

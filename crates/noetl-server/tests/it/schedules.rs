//! Schedules over HTTP, and what several control planes make of them, on every store.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use noetl_control::{ControlPlane, Options};
use noetl_model::{ExecutionId, ScheduleId, Tenant, Timestamp};
use noetl_store::{ExecutionFilter, Store, SystemClock};
use noetl_store_postgres::PostgresStore;
use noetl_test_app::{TestApp, migrated_database};
use noetl_triggers::ScheduleSpec;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{GREET, ask, get, post, register, shown};
use crate::stores::on_every_store;

async fn sent(app: &TestApp, verb: Method, path: &str, body: Value) -> (u16, Value) {
    let asked = ask(app, verb, path).header("content-type", "application/json");
    asked.body(body.to_string()).answer().await
}

async fn made(app: &TestApp, body: Value) -> String {
    let (status, made) = sent(app, Method::POST, "/api/schedules", body).await;
    assert_eq!(status, 200, "{made}");
    made["schedule_id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_created_read_changed_and_deleted() {
    on_every_store(async |app| {
        register(app, GREET).await;
        let body = json!({"name": "nightly", "playbook": "tests/greet", "cron": "30 2 1 1 *",
            "timezone": "europe/berlin", "overlap": "skip", "payload": {"who": "Ada"}});
        let id = made(app, body).await;
        let path = format!("/api/schedules/{id}");
        let (status, mut first) = get(app, &path).answer().await;
        let next = first["next_run_at"].take();
        assert!(next.as_str().is_some_and(|next| next.ends_with("-01-01T01:30:00Z")), "{next}");
        insta::allow_duplicates! {
            assert_snapshot!(shown(status, first), @r#"
            200
            {
              "schedule_id": "[id]",
              "name": "nightly",
              "playbook": "tests/greet",
              "cron": "30 2 1 1 *",
              "timezone": "Europe/Berlin",
              "missed": "one",
              "overlap": "skip",
              "enabled": true,
              "payload": {
                "who": "Ada"
              },
              "next_run_at": null,
              "created_at": "[time]",
              "updated_at": "[time]"
            }
            "#);
        }
        let (status, changed) =
            sent(app, Method::PATCH, &path, json!({"at": "2099-01-01T00:00:00Z", "payload": null}))
                .await;
        assert_eq!(status, 200, "{changed}");
        assert_eq!(
            (&changed["next_run_at"], &changed["cron"]),
            (&json!("2099-01-01T00:00:00Z"), &Value::Null)
        );
        assert_eq!((&changed["payload"], &changed["overlap"]), (&Value::Null, &json!("skip")));
        let (_, paused) = post(app, &format!("{path}/pause"), "").answer().await;
        assert_eq!(paused["enabled"], false);
        let (_, resumed) = post(app, &format!("{path}/resume"), "").answer().await;
        assert_eq!(
            (&resumed["enabled"], &resumed["next_run_at"]),
            (&json!(true), &changed["next_run_at"])
        );
        let (status, started) = post(app, &format!("{path}/run"), "").answer().await;
        assert_eq!((status, &started["status"]), (200, &json!("started")), "{started}");
        let (_, whole) = get(app, &path).answer().await;
        assert_eq!(whole["last_execution_id"], started["execution_id"]);
        let (_, runs) =
            get(app, &format!("/api/executions?parent_execution_id={id}")).answer().await;
        assert_eq!(runs.as_array().map(Vec::len), Some(1));
        let (_, list) = get(app, "/api/schedules").answer().await;
        assert_eq!(list["schedules"].as_array().map(Vec::len), Some(1));
        let (status, gone) = ask(app, Method::DELETE, &path).answer().await;
        assert_eq!((status, &gone["status"]), (200, &json!("deleted")));
        for asked in [
            get(app, &path),
            ask(app, Method::DELETE, &path),
            post(app, &format!("{path}/run"), ""),
        ] {
            let (status, body) = asked.answer().await;
            assert_eq!((status, &body["code"]), (404, &json!("schedule_not_found")));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_schedule_is_reported_and_not_created() {
    on_every_store(async |app| {
        let mut answers = String::new();
        let deep = (0..110).fold(json!(1), |inner, _| json!([inner]));
        for body in [
            json!({}),
            json!({"playbook": "a/b", "cron": "0 25 * * *", "timezone": "Mars/Phobos"}),
            json!({"playbook": "a/b", "every": 60, "cron": "* * * * *"}),
            json!({"playbook": "a/b", "every": 0}),
            json!({"playbook": "a/b", "every": "1m", "overlap": "maybe"}),
            json!({"playbook": 7, "at": "soon"}),
            json!({"playbook": "a/b", "every": 60, "payload": {"a": deep}}),
        ] {
            let (status, answer) = sent(app, Method::POST, "/api/schedules", body).await;
            answers.push_str(&format!("{status} {}: {}\n", answer["code"], answer["error"]));
        }
        insta::allow_duplicates! {
            assert_snapshot!(answers, @r#"
            422 "invalid_document": "1:58: 'playbook' is missing (and 1 more)"
            422 "invalid_document": "1:83: hour: '25' is out of range (and 1 more)"
            422 "invalid_document": "1:76: 'cron' and 'every' exclude each other"
            422 "invalid_document": "1:84: this is no interval of 1 s to a year, in whole seconds"
            422 "invalid_document": "1:99: 'maybe' is not possible here"
            422 "invalid_document": "1:70: expected text, found a number (and 1 more)"
            422 "too_deep": "the payload nests more than 100 levels deep"
            "#);
        }
        let (_, list) = get(app, "/api/schedules").answer().await;
        assert_eq!(list, json!({"schedules": []}));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_of_a_document_is_changed_only_through_the_document() {
    on_every_store(async |app| {
        register(app, GREET).await;
        let document = "kind: Schedule\nmetadata: {name: often, path: sched/often}\nspec: {playbook: tests/greet, every: 1h}\n";
        let (status, body) = register(app, document).await;
        assert_eq!((status, &body["kind"]), (200, &json!("schedule")), "{body}");
        let (_, list) = get(app, "/api/schedules").answer().await;
        let schedule = &list["schedules"][0];
        assert_eq!((&schedule["document"], &schedule["interval_seconds"]), (&json!("sched/often"), &json!(3600)));
        let path = format!("/api/schedules/{}", schedule["schedule_id"].as_str().expect("an id"));
        let (status, body) = sent(app, Method::PATCH, &path, json!({"every": 60})).await;
        assert_eq!((status, &body["code"]), (409, &json!("schedule_of_document")), "{body}");
        assert_eq!(ask(app, Method::DELETE, &path).answer().await.0, 409);
        assert_eq!(post(app, &format!("{path}/pause"), "").answer().await.0, 200);
        let (status, body) = register(app, &document.replace("1h", "soon")).await;
        assert_eq!(status, 422, "{body}");
        assert_eq!(body["diagnostics"][0]["line"], 3, "{body}");
        sent(app, Method::POST, "/api/catalog/delete", json!({"path": "sched/often"})).await;
        assert_eq!(get(app, &path).answer().await.0, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn due_schedules_start_without_requests() {
    on_every_store(async |app| {
        register(app, GREET).await;
        let id = made(app, json!({"playbook": "tests/greet", "at": "2020-01-01T00:00:00Z"})).await;
        let path = format!("/api/schedules/{id}");
        let whole = async {
            loop {
                let (_, whole) = get(app, &path).answer().await;
                if whole["last_status"] == "started" {
                    break whole;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let whole = tokio::time::timeout(Duration::from_secs(30), whole).await.expect("it starts");
        assert_eq!(whole["last_run_at"], "2020-01-01T00:00:00Z");
        assert_eq!(
            (&whole["next_run_at"], whole["last_execution_id"].is_string()),
            (&Value::Null, true)
        );
    })
    .await;
}

/// Returns the execution IDs of a schedule's runs.
async fn runs(store: &dyn Store, id: ScheduleId) -> Vec<ExecutionId> {
    let parent = Some(ExecutionId::new(id.get()));
    let filter = ExecutionFilter { parent, limit: 10_000, ..ExecutionFilter::default() };
    let rows = store.executions(&Tenant::default(), &filter).await.expect("a list");
    rows.into_iter().map(|row| row.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_control_planes_start_every_scheduled_run_once_on_one_postgres() {
    let database = migrated_database();
    let mut controls = Vec::new();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        let options = noetl_store_postgres::Options::new(&database.url()).expect("a URL");
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(options).await.expect("a store"));
        let options = Options { slots: 0, schedules: false, ..Options::default() };
        let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await;
        controls.push(Arc::new(control.expect("a control plane")));
        stores.push(store);
    }
    let tenant = Tenant::default();
    let registered = controls[0].catalog.register(&tenant, GREET.to_owned(), "playbook", false);
    registered.await.expect("a playbook");
    let spec = json!({"playbook": "tests/greet", "every": 1, "missed": "all"});
    let spec = spec.as_object().expect("a map").clone();
    let row =
        controls[0].triggers.schedules.create(&tenant, ScheduleSpec { name: None, spec }).await;
    // A stop of 40 s: its first run was due then.
    let mut schedule = row.expect("a schedule").schedule;
    let now = controls[0].now();
    let from = Timestamp::from_millis(now.as_millis() / 1000 * 1000).minus(Duration::from_secs(40));
    schedule.next_run_at = Some(from);
    let id = schedule.id;
    stores[0].put_schedule(&tenant, schedule).await.expect("a row");
    for round in 0..60_u64 {
        let tasks: Vec<_> = controls
            .iter()
            .map(|control| {
                let control = control.clone();
                tokio::spawn(async move {
                    let _ = control.triggers.schedules.start_due().await;
                })
            })
            .collect();
        // Killed at whatever they wait for.
        tokio::time::sleep(Duration::from_millis(round % 20)).await;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for task in tasks {
            let _ = task.await;
        }
    }
    // Until the rest is through, by both at once.
    loop {
        let (one, other) = tokio::join!(
            controls[0].triggers.schedules.start_due(),
            controls[1].triggers.schedules.start_due()
        );
        if !one.expect("an answer").is_zero() && !other.expect("an answer").is_zero() {
            break;
        }
    }
    let row = controls[0].triggers.schedules.get(&tenant, id).await.expect("a row");
    let last = row.last_run_at.expect("runs");
    let ticks = (last.as_millis() - from.as_millis()) / 1000 + 1;
    assert!(ticks >= 40, "{ticks}");
    assert_eq!(i64::try_from(runs(&*stores[0], id).await.len()).expect("a number"), ticks);
    for control in controls {
        control.close().await;
    }
}

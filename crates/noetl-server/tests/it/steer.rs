use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{GREET, finished, get, open_command, post, register, report, started};

async fn detail(app: &TestApp, id: &Value) -> Value {
    let id = id.as_str().expect("an id as text");
    get(app, &format!("/api/executions/{id}")).answer().await.1
}

/// A failed execution: its first step ended well, its second did not.
async fn failed(app: &TestApp) -> i64 {
    let id = started(app).await;
    for event in ["command.started", "call.done", "command.completed"] {
        report(app, id, "start", event).await;
    }
    for event in ["command.started", "command.failed"] {
        report(app, id, "end", event).await;
    }
    let (_, status) = get(app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(status["status"], "FAILED", "{status}");
    id
}

#[tokio::test]
async fn execution_lists_have_the_fields_of_web_pages() {
    let app = TestApp::start(2).await;
    finished(&app).await;
    assert_snapshot!(get(&app, "/api/executions").shown().await, @r#"
    200
    [
      {
        "execution_id": "[id number]",
        "catalog_id": "[id number]",
        "path": "tests/greet",
        "version": 1,
        "status": "COMPLETED",
        "started_at": "[time]",
        "completed_at": "[time]",
        "start_time": "[time]",
        "end_time": "[time]",
        "duration_seconds": "[seconds]",
        "duration_human": "[length]",
        "progress": 100,
        "event_count": 14,
        "parent_execution_id": null,
        "error": null
      }
    ]
    "#);
    app.close().await;
}

#[tokio::test]
async fn executions_are_listed_by_their_parent() {
    let app = TestApp::start(0).await;
    let parent = started(&app).await;
    let body = json!({"path": "tests/greet", "parent_execution_id": parent}).to_string();
    let (_, child) = post(&app, "/api/execute", body).answer().await;
    let list = async |query: String| get(&app, &format!("/api/executions?{query}")).answer().await;
    let (_, listed) = list(format!("parent_execution_id={parent}&ids=string")).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(listed[0]["execution_id"], child["execution_id"]);
    assert_eq!(listed[0]["parent_execution_id"], parent.to_string());
    assert_eq!(list("parent_execution_id=7".to_owned()).await.1, json!([]));
    let (status, body) = list("parent_execution_id=me".to_owned()).await;
    assert_eq!((status, &body["code"]), (400, &"invalid_query".into()), "{body}");
    app.close().await;
}

#[tokio::test]
async fn a_page_of_a_log_is_filtered_by_type_and_position() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let page =
        async |query: &str| get(&app, &format!("/api/executions/{id}?{query}")).answer().await.1;
    let types = |body: &Value| -> Vec<String> {
        let events = body["events"].as_array().expect("events");
        events.iter().map(|event| event["event_type"].as_str().expect("text").to_owned()).collect()
    };
    let steps = page("page=1&page_size=3&event_type=step.enter,step.exit").await;
    assert_eq!(types(&steps), ["step.exit", "step.enter", "step.exit"]);
    assert_snapshot!(serde_json::to_string(&steps["pagination"]).expect("JSON"), @r#"{"page":1,"page_size":3,"total_events":4,"total_pages":2,"has_next":true,"has_prev":false}"#);
    let rest = page("page=2&page_size=3&event_type=step.enter,step.exit").await;
    assert_eq!(types(&rest), ["step.enter"]);
    assert_eq!(rest["pagination"]["has_next"], false);

    let all = page("").await;
    let events = all["events"].as_array().expect("events");
    let third = &events[2]["event_id"];
    let after = page(&format!("page=1&page_size=100&since_event_id={third}")).await;
    assert_eq!(after["pagination"]["total_events"], events.len() - 3);
    assert_eq!(after["events"].as_array().expect("events").last().expect("one")["seq"], 4);
    // An id that is in no log has a place among those that are.
    let unknown = third.as_i64().expect("an id") + 1;
    let after = page(&format!("since_event_id={unknown}&event_type=step.exit")).await;
    assert_eq!(types(&after), ["step.exit", "step.exit"], "oldest first without a page");
    assert_eq!(page("event_type=none").await["events"], json!([]));
    assert!(steps["events"][0]["duration"].is_number(), "{steps}");
    assert!(steps["events"][2]["duration"].is_null(), "its beginning is on another page: {steps}");
    let ended = events.last().expect("an end");
    assert!(ended["duration"].is_number() && ended["catalog_id"].is_number(), "{ended}");
    assert_eq!(ended["execution_id"], id);
    let (status, body) =
        get(&app, &format!("/api/executions/{id}?since_event_id=x")).answer().await;
    assert_eq!((status, &body["code"]), (400, &"invalid_query".into()), "{body}");
    app.close().await;
}

#[tokio::test]
async fn a_cascading_cancel_reports_every_cancelled_descendant() {
    let app = TestApp::start(0).await;
    let top = started(&app).await;
    let below = async |parent: &str| {
        let body = json!({"path": "tests/greet", "parent_execution_id": parent}).to_string();
        let (_, body) = post(&app, "/api/execute", body).answer().await;
        body["execution_id"].as_str().expect("an id").to_owned()
    };
    let child = below(&top.to_string()).await;
    let grandchild = below(&child).await;
    let over = below(&top.to_string()).await;
    post(&app, &format!("/api/executions/{over}/cancel"), "").answer().await;
    let body = r#"{"cascade":true,"reason":"enough"}"#;
    let (status, reply) = post(&app, &format!("/api/executions/{top}/cancel"), body).answer().await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(reply["cancelled_executions"], json!([top.to_string(), child, grandchild]));
    let (_, row) = get(&app, &format!("/api/executions/{grandchild}")).answer().await;
    assert_eq!((&row["status"], &row["error"]), (&"CANCELLED".into(), &"enough".into()));
    app.close().await;
}

#[tokio::test]
async fn an_interrupted_cascade_continues_when_requested_again() {
    let app = TestApp::start(0).await;
    let top = started(&app).await;
    let below = async |parent: &str| {
        let body = json!({"path": "tests/greet", "parent_execution_id": parent}).to_string();
        let (_, body) = post(&app, "/api/execute", body).answer().await;
        body["execution_id"].as_str().expect("an id").to_owned()
    };
    let child = below(&top.to_string()).await;
    post(&app, &format!("/api/executions/{top}/cancel"), "").answer().await;
    let body = r#"{"cascade":true}"#;
    let (status, reply) = post(&app, &format!("/api/executions/{top}/stop"), body).answer().await;
    assert_eq!((status, &reply["cancelled_executions"]), (200, &json!([child])), "{reply}");
    let grandchild = below(&child).await;
    let again = post(&app, &format!("/api/executions/{top}/cancel"), body).answer().await;
    assert_eq!(again.0, 400, "a second cancel is refused, and does what it was asked for");
    let (_, row) = get(&app, &format!("/api/executions/{grandchild}")).answer().await;
    assert_eq!(row["status"], "CANCELLED");
    app.close().await;
}

#[tokio::test]
async fn cancelling_a_finished_execution_succeeds() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let stop = || post(&app, &format!("/api/executions/{id}/stop"), "");
    assert_snapshot!(stop().shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "status": "cancelled",
      "message": "Execution stopped",
      "cancelled_executions": [
        "[id]"
      ]
    }
    "#);
    assert_snapshot!(stop().shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "status": "cancelled",
      "message": "Execution was CANCELLED already",
      "cancelled_executions": []
    }
    "#);
    assert_eq!(post(&app, "/api/executions/7/stop", "").answer().await.0, 404);
    app.close().await;
}

#[tokio::test]
async fn a_rerun_has_the_same_playbook_and_the_workload_with_changes() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let rerun = |body: &str| post(&app, &format!("/api/executions/{id}/rerun"), body);
    let body = r#"{"workload":{"more":{"a":1}},"resource_kind":"playbook"}"#;
    assert_snapshot!(rerun(body).shown().await, @r#"
    200
    {
      "execution_id": "[id]",
      "status": "started",
      "commands_generated": 1
    }
    "#);
    let (_, second) = rerun(body).answer().await;
    // A newer version of the playbook is not what ran.
    register(&app, &crate::api::GREET.replace("Hello", "Bye")).await;
    let path = format!("/api/executions/{}/rerun", second["execution_id"].as_str().expect("id"));
    let (_, third) =
        post(&app, &path, r#"{"workload":{"more":{"b":2},"who":"Ada"}}"#).answer().await;
    let shown = detail(&app, &third["execution_id"]).await;
    assert_eq!(shown["workload"], json!({"who": "Ada", "more": {"a": 1, "b": 2}}));
    assert_eq!(shown["version"], 1);
    assert_eq!(post(&app, "/api/executions/7/rerun", "").answer().await.0, 404);
    app.close().await;
}

#[tokio::test]
async fn a_retry_repeats_failed_steps_only() {
    let app = TestApp::start(0).await;
    let id = failed(&app).await;
    let retry = |body: &str| post(&app, &format!("/api/executions/{id}/retry"), body);
    assert_snapshot!(retry("").shown().await, @r#"
    200
    {
      "execution_id": "[id]",
      "status": "started",
      "commands_generated": 1,
      "forked_from": {
        "execution_id": "[id]",
        "event_id": "[id]",
        "seq": 10
      }
    }
    "#);
    let (_, reply) = retry("").answer().await;
    let shown = detail(&app, &reply["execution_id"]).await;
    assert_eq!(
        (&shown["status"], &shown["parent_execution_id"]),
        (&"RUNNING".into(), &Value::Null)
    );
    let began = &shown["events"][0]["meta"]["forked_from"];
    assert_eq!(began["execution_id"], id.to_string());
    let issued = |step: &str| {
        let events = shown["events"].as_array().expect("events");
        let is =
            |event: &&Value| event["event_type"] == "command.issued" && event["node_id"] == step;
        events.iter().filter(is).count()
    };
    assert_eq!((issued("start"), issued("end")), (1, 1), "{shown}");
    let new: i64 = reply["execution_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    for event in ["command.started", "call.done", "command.completed"] {
        report(&app, new, "end", event).await;
    }
    assert_eq!(detail(&app, &reply["execution_id"]).await["status"], "COMPLETED");
    let (_, old) = get(&app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(old["status"], "FAILED", "the other is left as it is");
    app.close().await;
}

#[tokio::test]
async fn a_rejected_retry_names_the_reason() {
    let app = TestApp::start(0).await;
    let id = failed(&app).await;
    let retry = |id: &str, body: &str| post(&app, &format!("/api/executions/{id}/retry"), body);
    assert_snapshot!(retry(&id.to_string(), r#"{"from":"nowhere"}"#).shown().await, @r#"
    422
    {
      "error": "step 'nowhere' was never entered; these were: start, end",
      "status": 422,
      "code": "step_not_entered",
      "detail": "step 'nowhere' was never entered; these were: start, end",
      "message": "step 'nowhere' was never entered; these were: start, end"
    }
    "#);
    let (_, reply) = retry(&id.to_string(), r#"{"from":"start"}"#).answer().await;
    assert_eq!(reply["forked_from"]["seq"], 0, "nothing came before its first step: {reply}");
    let running = reply["execution_id"].as_str().expect("an id");
    let (status, body) = retry(running, "").answer().await;
    assert_eq!((status, &body["code"]), (422, &"still_running".into()), "{body}");
    assert_eq!(retry("7", "").answer().await.0, 404);
    app.close().await;
}

#[tokio::test]
async fn a_fork_continues_from_an_event_id_or_sequence_number() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let fork = |body: String| post(&app, &format!("/api/executions/{id}/fork"), body);
    let (_, log) = get(&app, &format!("/api/executions/{id}/events?ids=string")).answer().await;
    let events = log["events"].as_array().expect("events").clone();
    let done = events.iter().find(|event| event["event_type"] == "call.done").expect("an answer");
    let by_id = json!({"at": done["event_id"], "workload": {"who": "Ada"}}).to_string();
    let (status, first) = fork(by_id).answer().await;
    assert_eq!(status, 200, "{first}");
    assert_eq!(first["forked_from"]["event_id"], done["event_id"]);
    let (_, second) = fork(json!({"at": done["seq"]}).to_string()).answer().await;
    assert_eq!(second["forked_from"], first["forked_from"]);
    for reply in [first, second] {
        let id: i64 = reply["execution_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let tenant = noetl_model::Tenant::default();
        let executions = &app.control.journal.executions;
        executions
            .wait_until_finished(&tenant, noetl_model::ExecutionId::new(id))
            .await
            .expect("an answer");
        let shown = detail(&app, &reply["execution_id"]).await;
        assert_eq!(shown["status"], "COMPLETED", "{shown}");
        assert_eq!(shown["result"]["said"], "Hello, world!", "what was said stays said");
    }
    let (_, anew) = fork(r#"{"at":0,"workload":{"who":"Ada"}}"#.to_owned()).answer().await;
    assert_eq!(anew["forked_from"]["event_id"], Value::Null);
    assert_eq!(detail(&app, &anew["execution_id"]).await["workload"]["who"], "Ada");
    assert_snapshot!(fork(r#"{"at":4711}"#.to_owned()).shown().await, @r#"
    422
    {
      "error": "the log of execution [id] has no event 4711; sequence numbers are 1 to 14",
      "status": 422,
      "code": "event_not_found",
      "detail": "the log of execution [id] has no event 4711; sequence numbers are 1 to 14",
      "message": "the log of execution [id] has no event 4711; sequence numbers are 1 to 14"
    }
    "#);
    let (status, body) = fork(r#"{"at":-1}"#.to_owned()).answer().await;
    assert_eq!((status, &body["code"]), (422, &"event_not_found".into()), "{body}");
    app.close().await;
}

#[tokio::test]
async fn cleanup_cancels_executions_started_long_ago() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let clean = |body: &'static str| post(&app, "/api/executions/cleanup", body);
    let (_, none) = clean("").answer().await;
    assert_eq!(none["cancelled_count"], 0, "it began just now: {none}");
    assert_snapshot!(clean(r#"{"older_than_minutes":0,"dry_run":true}"#).shown().await, @r#"
    200
    {
      "cancelled_count": 1,
      "message": "1 executions older than 0 minutes would be cancelled",
      "execution_ids": [
        "[id number]"
      ]
    }
    "#);
    let (_, status) = get(&app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(status["status"], "RUNNING");
    let (_, body) = clean(r#"{"older_than_minutes":0}"#).answer().await;
    assert_eq!(body["execution_ids"], json!([id]));
    let (_, status) = get(&app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(status["status"], "CANCELLED");
    let (status, body) = clean(r#"{"older_than_minutes":-5}"#).answer().await;
    assert_eq!((status, &body["code"]), (422, &"invalid_body".into()), "{body}");
    app.close().await;
}

#[tokio::test]
async fn a_failed_execution_continues_with_a_fixed_version() {
    let app = TestApp::start(0).await;
    let id = failed(&app).await;
    let mended = GREET.replace("{{ start.message }}", "mended {{ start.message }}");
    let (status, body) = register(&app, &mended).await;
    assert_eq!((status, &body["version"]), (200, &json!(2)), "{body}");
    let ask = |verb: &str, body: Value| {
        post(&app, &format!("/api/executions/{id}/{verb}"), body.to_string())
    };
    for version in [json!(2), json!("latest")] {
        let (status, retried) = ask("retry", json!({ "version": version })).answer().await;
        assert_eq!((status, &retried["commands_generated"]), (200, &json!(1)), "{retried}");
        let shown = detail(&app, &retried["execution_id"]).await;
        assert_eq!(shown["version"], 2, "{shown}");
        let new = retried["execution_id"].as_str().expect("text").parse().expect("an id");
        let command = open_command(&app, new).await;
        let (_, command) = get(&app, &format!("/api/commands/{command}")).answer().await;
        let message = &command["context"]["tool_config"]["result"]["said"];
        assert_eq!(message, "mended hi", "{command}");
    }
    let (_, same) = ask("retry", json!({})).answer().await;
    assert_eq!(detail(&app, &same["execution_id"]).await["version"], 1);
    let gone = GREET.replace("step: end", "step: finish");
    let (status, body) = register(&app, &gone).await;
    assert_eq!(status, 200, "{body}");
    assert_snapshot!(ask("retry", json!({"version": 3})).shown().await, @r#"
    422
    {
      "error": "version 3 cannot continue the execution: at event 10 of the log, step 'end' is running, and the version has no such step; fork at another event, or rerun the execution",
      "status": 422,
      "code": "version_does_not_fit",
      "detail": "version 3 cannot continue the execution: at event 10 of the log, step 'end' is running, and the version has no such step; fork at another event, or rerun the execution",
      "message": "version 3 cannot continue the execution: at event 10 of the log, step 'end' is running, and the version has no such step; fork at another event, or rerun the execution"
    }
    "#);
    // The version is compatible before that step: at sequence number 3 the first step is running.
    let (status, forked) = ask("fork", json!({"version": 3, "at": 3})).answer().await;
    assert_eq!(status, 200, "{forked}");
    assert_snapshot!(ask("fork", json!({"version": 9})).shown().await, @r#"
    404
    {
      "error": "Playbook not found: tests/greet version 9",
      "status": 404,
      "code": "playbook_not_found",
      "detail": "Playbook not found: tests/greet version 9",
      "message": "Playbook not found: tests/greet version 9"
    }
    "#);
    for wrong in [json!(-1), json!({}), json!("two")] {
        let (status, body) = ask("fork", json!({ "version": wrong })).answer().await;
        assert_eq!(status, 422, "{wrong}: {body}");
    }
    app.close().await;
}

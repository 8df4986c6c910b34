//! The calls of the published web page, in the shape its browser sends them, and every field it
//! shows.

use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{Ask, GREET, ask};
use crate::published::{As, begun, ended, open_app, reads};

/// Origin of the page's development server.
const PAGE: &str = "http://localhost:3001";

/// Creates a request as a browser sends it for the page.
pub(crate) fn page<'a>(app: &'a TestApp, verb: Method, path: &str) -> Ask<'a> {
    ask(app, verb, &format!("/api/{path}")).header("origin", PAGE)
}

pub(crate) async fn read(app: &TestApp, path: &str) -> Value {
    let (status, body) = page(app, Method::GET, path).answer().await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

pub(crate) async fn send(app: &TestApp, verb: Method, path: &str, body: Value) -> (u16, Value) {
    let asked = page(app, verb, path).header("content-type", "application/json");
    asked.body(body.to_string()).answer().await
}

pub(crate) async fn post(app: &TestApp, path: &str, body: Value) -> Value {
    let (status, body) = send(app, Method::POST, path, body).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// As the page registers what was typed: the text itself.
async fn register(app: &TestApp, content: &str) -> Value {
    post(app, "catalog/register", json!({"content": content, "resource_type": "Playbook"})).await
}

#[tokio::test]
async fn a_browser_may_read_its_responses() {
    let app = open_app(0).await;
    let asked = page(&app, Method::OPTIONS, "executions")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,x-session-token,content-type");
    let before = asked.send().await;
    assert_eq!(before.status().as_u16(), 200);
    let header = |name: &str| before.headers()[name].to_str().unwrap_or_default().to_lowercase();
    assert_eq!(header("access-control-allow-origin"), PAGE);
    assert!(header("access-control-allow-methods").contains("post"));
    assert!(header("access-control-allow-headers").contains("x-session-token"));
    let answer = page(&app, Method::GET, "executions/7").send().await;
    assert_eq!(answer.headers()["access-control-allow-origin"], PAGE, "of errors too");
    let body: Value = answer.json().await.expect("JSON");
    let shown = [("error", As::Text), ("detail", As::Text), ("message", As::Text)];
    reads(&body, &shown);
    app.close().await;
}

#[tokio::test]
async fn the_page_reads_health_and_statistics() {
    let app = open_app(2).await;
    register(&app, GREET).await;
    ended(&app, "tests/greet").await;
    let health = read(&app, "health").await;
    reads(&health, &[("status", As::Text), ("message", As::Text), ("timestamp", As::Time)]);
    let stats = read(&app, "dashboard/stats").await;
    let fields = [
        ("total_playbooks", As::Count),
        ("total_executions", As::Count),
        ("active_executions", As::Count),
        ("success_rate", As::Number),
        ("recent_executions", As::List),
    ];
    reads(&stats, &fields);
    reads(&stats["recent_executions"][0], EXECUTION);
    let counted = ["total_playbooks", "total_executions", "active_executions"];
    assert_eq!(counted.map(|name| stats[name].as_u64()), [Some(1), Some(1), Some(0)]);
    app.close().await;
}

/// A playbook with all that a card shows.
const CARD: &str = "  name: greet\n  description: Says hello\n  capabilities: [talk]\n  terminal: true\n  \
                    labels: {team: ours}\n";

#[tokio::test]
async fn the_catalog_shows_cards() {
    let app = open_app(0).await;
    let registered = register(&app, &GREET.replace("  name: greet\n", CARD)).await;
    reads(&registered, &[("path", As::Text), ("version", As::Count), ("message", As::Text)]);
    let fields = [
        ("catalog_id", As::TextId),
        ("path", As::Text),
        ("version", As::Count),
        ("kind", As::Text),
        ("content", As::Text),
        ("layout", As::List),
        ("payload.metadata.name", As::Text),
        ("payload.metadata.description", As::Text),
        ("payload.metadata.capabilities", As::List),
        ("payload.metadata.terminal", As::Bool),
        ("payload.workflow", As::List),
        ("meta.registered_at", As::Time),
        ("created_at", As::Time),
    ];
    let listed = post(&app, "catalog/list", json!({"resource_type": "Playbook"})).await;
    reads(&listed["entries"][0], &fields);
    let entry = json!({"path": "tests/greet", "version": "latest"});
    let one = post(&app, "catalog/resource", entry).await;
    reads(&one, &fields);
    assert_eq!(one["payload"]["metadata"]["description"], "Says hello");
    assert_eq!(one["payload"]["workflow"], one["layout"]);
    assert_eq!((&one["payload"]["who"], &one["meta"]["team"]), (&"world".into(), &"ours".into()));
    // A program gets the workload, and nothing that is not in it.
    let plain = ask(&app, Method::POST, "/api/catalog/list").body("{}").answer().await.1;
    assert_eq!(plain["entries"][0]["payload"], json!({"who": "world"}));
    assert_eq!(plain["entries"][0]["meta"], json!({"team": "ours"}));
    let none = post(&app, "catalog/list", json!({"resource_type": "mcp"})).await;
    assert_eq!(none, json!({"entries": []}));
    app.close().await;
}

#[tokio::test]
async fn a_workload_key_named_metadata_is_unchanged() {
    let app = open_app(0).await;
    register(&app, &GREET.replace("who: world", "who: world\n  metadata: mine")).await;
    // What cannot be read any more has no metadata, and is listed all the same.
    let forced = json!({"content": "kind: Playbook\nmetadata: {name: odd}\nworkflow: 7\n"});
    post(&app, "catalog/register?force=true", forced).await;
    let listed = post(&app, "catalog/list", json!({})).await;
    let entries = listed["entries"].as_array().expect("entries");
    let of = |path: &str| entries.iter().find(|one| one["path"] == path).expect("an entry");
    assert_eq!(of("tests/greet")["payload"]["metadata"], "mine");
    assert_eq!(of("odd")["payload"]["workflow"], 7);
    app.close().await;
}

#[tokio::test]
async fn agents_and_input_forms_are_returned() {
    let app = open_app(0).await;
    let workload = "  who: world # ui:description=Whom to greet\n  size: s # ui:enum=[s, m]\n";
    let agent =
        GREET.replace("  name: greet\n", "  name: greet\n  agent: true\n  capabilities: [a]\n");
    register(&app, &agent.replace("  who: world\n", workload)).await;
    for (wanted, expected) in
        [(json!({}), 1), (json!({"capabilities": ["a"]}), 1), (json!({"capabilities": ["b"]}), 0)]
    {
        let listed = post(&app, "catalog/agents/list", wanted).await;
        assert_eq!(listed["entries"].as_array().map(Vec::len), Some(expected));
    }
    let form = read(&app, "catalog/tests/greet/ui_schema?version=latest").await;
    let fields = [
        ("path", As::Text),
        ("version", As::Count),
        ("kind", As::Text),
        ("title", As::Text),
        ("description_markdown", As::Anything),
        ("exposed_in_ui", As::Bool),
        ("generated_at", As::Time),
        ("fields.0.name", As::Text),
        ("fields.0.kind", As::Text),
        ("fields.0.default", As::Text),
        ("fields.0.description", As::Text),
        ("fields.0.secret", As::Bool),
        ("fields.0.credential_glob", As::Null),
        ("fields.0.options", As::Null),
        ("fields.0.children", As::Null),
    ];
    reads(&form, &fields);
    assert_eq!(
        (&form["fields"][1]["kind"], &form["fields"][1]["options"]),
        (&"enum".into(), &json!(["s", "m"]))
    );
    app.close().await;
}

#[tokio::test]
async fn the_editor_reads_validates_and_saves_documents() {
    let app = open_app(0).await;
    let id = register(&app, GREET).await["catalog_id"].clone();
    let id = id.as_str().expect("text");
    for name in [id, "tests/greet"] {
        let path = format!("catalog/playbook/content?playbook_id={name}");
        assert_eq!(read(&app, &path).await["content"], GREET, "{name}");
    }
    let path = "catalog/playbook/content?playbook_id=tests/greet";
    let (status, saved) =
        send(&app, Method::PUT, path, json!({"content": GREET.replace("world", "moon")})).await;
    assert_eq!((status, &saved["version"]), (200, &2.into()), "{saved}");
    let good = post(&app, "catalog/playbooks/validate", json!({"content": GREET})).await;
    assert_eq!(good["valid"], true);
    let wrong = json!({"content": GREET.replace("kind: noop", "kind: noob")});
    let bad = post(&app, "catalog/playbooks/validate", wrong.clone()).await;
    assert_eq!(bad["valid"], false);
    reads(&bad, &[("errors.0", As::Text)]);
    // What is shown when it is registered all the same.
    let (status, refused) = send(&app, Method::POST, "catalog/register", wrong).await;
    assert_eq!(status, 422);
    reads(&refused, &[("detail", As::Text)]);
    for path in ["catalog/playbooks/generate/ai", "catalog/playbooks/explain/ai"] {
        let (status, body) = send(&app, Method::POST, path, json!({"prompt": "a"})).await;
        assert_eq!(status, 501, "{path}");
        reads(&body, &[("detail", As::Text)]);
    }
    app.close().await;
}

/// Fields of the table of executions.
const EXECUTION: &[(&str, As)] = &[
    ("execution_id", As::TextId),
    ("path", As::Text),
    ("version", As::Count),
    ("status", As::Text),
    ("start_time", As::Time),
    ("end_time", As::Time),
    ("duration_seconds", As::Number),
    ("duration_human", As::Text),
    ("progress", As::Number),
    ("error", As::Null),
    ("parent_execution_id", As::Null),
];

/// Fields of the table of events.
const EVENT: &[(&str, As)] = &[
    ("execution_id", As::TextId),
    ("event_id", As::TextId),
    ("event_type", As::Text),
    ("node_id", As::Text),
    ("node_name", As::Text),
    ("status", As::Text),
    ("created_at", As::Time),
    ("timestamp", As::Time),
    ("duration", As::Anything),
    ("context", As::Anything),
    ("result", As::Anything),
    ("error", As::Anything),
    ("catalog_id", As::TextId),
    ("parent_execution_id", As::Null),
    ("parent_event_id", As::Anything),
];

#[tokio::test]
async fn executions_and_their_events_are_shown() {
    let app = open_app(2).await;
    register(&app, GREET).await;
    let id = ended(&app, "tests/greet").await;
    let list = read(&app, "executions").await;
    reads(&list[0], EXECUTION);
    assert_eq!((&list[0]["execution_id"], &list[0]["progress"]), (&json!(id), &100.into()));
    let whole = read(&app, &format!("executions/{id}")).await;
    reads(&whole, EXECUTION);
    reads(&whole, &[("result.said", As::Text), ("events", As::List)]);
    let first = read(&app, &format!("executions/{id}?page=1&page_size=5")).await;
    let fields = [
        ("pagination.page", As::Count),
        ("pagination.page_size", As::Count),
        ("pagination.total_events", As::Count),
        ("pagination.total_pages", As::Count),
        ("pagination.has_next", As::Bool),
        ("pagination.has_prev", As::Bool),
    ];
    reads(&first, &fields);
    let numbers = ["page", "page_size", "total_events", "total_pages"];
    let numbers = numbers.map(|name| first["pagination"][name].as_u64().unwrap_or_default());
    assert_eq!(numbers, [1, 5, 14, 3]);
    let mut seen = Vec::new();
    for page in 1..=3 {
        let page = read(&app, &format!("executions/{id}?page={page}&page_size=5")).await;
        for event in page["events"].as_array().expect("events") {
            reads(event, EVENT);
            seen.push(event["event_id"].as_str().and_then(|id| id.parse::<i64>().ok()));
        }
    }
    assert_eq!(seen.len(), 14);
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first, each once: {seen:?}");
    let ended_with = &first["events"][0];
    assert_eq!(ended_with["event_type"], "playbook.completed");
    reads(ended_with, &[("duration", As::Number)]);
    // A poll requests new events; a filter selects types.
    let since = first["events"][2]["event_id"].as_str().expect("an id");
    let path = format!("executions/{id}?page=1&page_size=50&since_event_id={since}");
    assert_eq!(read(&app, &path).await["events"].as_array().map(Vec::len), Some(2));
    let path = format!("executions/{id}?page=1&page_size=50&event_type=call.done");
    let done = read(&app, &path).await;
    assert_eq!(done["events"].as_array().map(Vec::len), Some(2));
    assert_eq!(done["events"][1]["result"]["context"]["data"]["message"], "Hello, world!");
    let status = read(&app, &format!("executions/{id}/status")).await;
    assert_eq!(status["status"], "COMPLETED");
    app.close().await;
}

#[tokio::test]
async fn an_execution_is_started_cancelled_and_rerun() {
    let app = open_app(0).await;
    let catalog_id = register(&app, GREET).await["catalog_id"].clone();
    let workload = json!({"who": "moon"});
    let by_id = json!({"catalog_id": catalog_id, "workload": workload, "resource_kind": "playbook", "merge": true});
    let by_path = json!({"path": "tests/greet", "version": "latest", "workload": workload, "resource_kind": "playbook"});
    for body in [by_id, by_path] {
        let started = post(&app, "execute", body).await;
        reads(&started, &[("execution_id", As::TextId)]);
        let id = started["execution_id"].as_str().expect("text");
        let running = read(&app, &format!("executions/{id}")).await;
        assert_eq!((&running["status"], &running["workload"]), (&"RUNNING".into(), &workload));
        reads(&running, &[("end_time", As::Null), ("progress", As::Count)]);
    }
    let id = begun(&app, "tests/greet").await;
    let cancel = json!({"reason": "enough", "cascade": true});
    post(&app, &format!("executions/{id}/cancel"), cancel.clone()).await;
    let (status, again) =
        send(&app, Method::POST, &format!("executions/{id}/cancel"), cancel).await;
    assert_eq!(status, 400);
    reads(&again, &[("message", As::Text)]);
    let stop = page(&app, Method::POST, &format!("executions/{id}/stop")).answer().await;
    assert_eq!(stop.0, 200, "what is over is stopped: {}", stop.1);
    let rerun = json!({"workload": {}, "resource_kind": "playbook"});
    let again = post(&app, &format!("executions/{id}/rerun"), rerun).await;
    reads(&again, &[("execution_id", As::TextId)]);
    for path in ["analyze", "analyze/ai"] {
        let path = format!("executions/{id}/{path}");
        assert_eq!(send(&app, Method::POST, &path, json!({})).await.0, 501, "{path}");
    }
    app.close().await;
}

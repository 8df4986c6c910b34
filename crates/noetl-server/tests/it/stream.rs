use std::sync::Arc;
use std::time::Duration;

use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use noetl_server::{Auth, Options};
use noetl_test_app::{SimClock, TestApp};

use crate::api::{finished, get, post, report, started};
use crate::roles::token;

/// Ids and names of the messages of a stream that has ended.
fn messages(text: &str) -> Vec<(Option<u64>, Option<String>)> {
    let field = |message: &str, name: &str| {
        let line = message.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    let messages = text.split("\n\n").filter(|message| message.contains("data:"));
    messages
        .map(|message| {
            let id = field(message, "id:").and_then(|id| id.parse().ok());
            (id, field(message, "event:"))
        })
        .collect()
}

#[tokio::test]
async fn a_stream_sends_the_log_and_ends_with_the_execution() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let answer = get(&app, &format!("/api/executions/{id}/stream")).send().await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.expect("a body");
    let sent = messages(&text);
    let (last, events) = sent.split_last().expect("messages");
    assert_eq!(last.1.as_deref(), Some("end"));
    let places: Vec<u64> = events.iter().filter_map(|(id, _)| *id).collect();
    assert_eq!(places, (1..=14).collect::<Vec<_>>());
    assert!(text.contains(r#""event_type":"playbook.completed""#));
    assert!(text.contains(r#""status":"COMPLETED","error":null,"events":14"#), "{text}");
    app.close().await;
}

#[tokio::test]
async fn a_list_stream_sends_the_list_once_and_then_changes() {
    let app = TestApp::start(0).await;
    let first = started(&app).await;
    let path = "/api/executions/stream?status=RUNNING&ids=string";
    let mut answer = get(&app, path).send().await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut rest = String::new();
    let mut next = async || {
        loop {
            if let Some((message, after)) = rest.split_once("\n\n") {
                let data = message.lines().find_map(|line| line.strip_prefix("data: "));
                let data = data.map(|data| serde_json::from_str(data).expect("JSON"));
                rest = after.to_owned();
                if let Some(data) = data {
                    return data;
                }
                continue;
            }
            let more = answer.chunk().await.expect("a chunk").expect("no end");
            rest.push_str(std::str::from_utf8(&more).expect("text"));
        }
    };
    let ids = |change: &serde_json::Value| {
        let changed = change["changed"].as_array().expect("a list").iter();
        changed.map(|row| row["execution_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&next().await), [first.to_string()]);
    let second = started(&app).await;
    let change = next().await;
    assert_eq!(
        (ids(&change), &change["gone"]),
        (vec![second.to_string().into()], &serde_json::json!([]))
    );
    let (status, _) = post(&app, &format!("/api/executions/{first}/cancel"), "{}").answer().await;
    assert_eq!(status, 200);
    let change = next().await;
    assert_eq!(
        (ids(&change), &change["gone"]),
        (Vec::<serde_json::Value>::new(), &serde_json::json!([first.to_string()]))
    );
    let (status, _) = get(&app, "/api/executions/stream?status=GONE").answer().await;
    assert_eq!(status, 400);
    app.close().await;
}

#[tokio::test]
async fn a_brief_log_omits_large_values() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let path = format!("/api/executions/{id}/events");
    let (_, whole) = get(&app, &path).answer().await;
    let (_, brief) = get(&app, &format!("{path}?brief=true")).answer().await;
    let traced = |reply: &serde_json::Value| {
        let events = reply["events"].as_array().expect("events");
        let traces = events.iter().filter(|event| !event["meta"]["trace"].is_null()).count();
        (events.len(), traces > 0)
    };
    assert_eq!((traced(&whole), traced(&brief)), ((14, true), (14, false)));
    let stream = get(&app, &format!("/api/executions/{id}/stream?brief=true")).send().await;
    assert!(!stream.text().await.expect("a body").contains("traceparent"));
    let (status, body) = get(&app, &format!("{path}?brief=perhaps")).answer().await;
    assert_eq!((status, &body["code"]), (400, &"invalid_query".into()), "{body}");
    app.close().await;
}

#[tokio::test]
async fn a_stream_resumes_after_the_last_event_id() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let path = format!("/api/executions/{id}/stream");
    let first = async |ask: crate::api::Ask<'_>| {
        messages(&ask.send().await.text().await.expect("a body"))[0].0
    };
    assert_eq!(first(get(&app, &format!("{path}?after=12"))).await, Some(13));
    let again = get(&app, &format!("{path}?after=1")).header("last-event-id", "13");
    assert_eq!(first(again).await, Some(14), "the header wins");
    assert_eq!(first(get(&app, &format!("{path}?after=99"))).await, None, "nothing but the end");
    let (status, body) = get(&app, &format!("{path}?after=x")).answer().await;
    assert_eq!((status, &body["code"]), (400, &"invalid_query".into()), "{body}");
    let (status, _) = get(&app, "/api/executions/7/stream").answer().await;
    assert_eq!(status, 404);
    app.close().await;
}

#[tokio::test]
async fn a_commit_wakes_a_stream() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let mut answer = get(&app, &format!("/api/executions/{id}/stream")).send().await;
    let mut text = String::new();
    let mut more = async |until: &str| {
        while !text.contains(until) {
            let chunk = answer.chunk().await.expect("a stream that stays").expect("more of it");
            text.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    };
    more("command.issued").await;
    report(&app, id, "start", "command.started").await;
    more("command.started").await;
    post(&app, &format!("/api/executions/{id}/cancel"), "").answer().await;
    more("event: end").await;
    assert!(answer.chunk().await.expect("an end").is_none(), "nothing comes after the end");
    app.close().await;
}

#[tokio::test]
async fn a_stopping_server_ends_its_streams() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let mut answer = get(&app, &format!("/api/executions/{id}/stream")).send().await;
    assert!(answer.chunk().await.expect("a stream").is_some());
    // It would wait for ever if a stream did not let go.
    app.close().await;
    while answer.chunk().await.expect("an end").is_some() {}
}

#[tokio::test]
async fn streams_over_the_limit_are_refused() {
    let options = Options { streams_max: 16, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let id = started(&app).await;
    let path = format!("/api/executions/{id}/stream");
    let mut open = Vec::new();
    for _ in 0..16 {
        let answer = get(&app, &path).send().await;
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    let (status, body) = get(&app, &path).answer().await;
    assert_eq!((status, &body["code"]), (503, &"too_many_streams".into()), "{body}");
    drop(open);
    app.close().await;
}

/// An app that knows callers by tokens.
async fn guarded(options: Options, clock: Arc<SimClock>) -> TestApp {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..options };
    TestApp::builder().slots(0).clock(clock).options(options).start().await
}

const LIST: &str = "/api/executions/stream";

#[tokio::test]
async fn a_tenant_at_its_stream_limit_is_refused_and_others_are_not() {
    let options = Options { tenant_streams_max: 2, ..Options::default() };
    let app = guarded(options, Arc::default()).await;
    let (acme, other) =
        (token(&app, "acme", Role::Viewer).await, token(&app, "other", Role::Viewer).await);
    let list = |bearer: &str| get(&app, LIST).header("authorization", bearer);
    let (first, _second) = (list(&acme).send().await, list(&acme).send().await);
    assert_eq!(first.status(), 200);
    let (status, body) = list(&acme).answer().await;
    assert_eq!((status, &body["code"]), (429, &"tenant_streams_exceeded".into()), "{body}");
    let message = body["error"].as_str().expect("a message");
    assert!(message.contains("NOETL_TENANT_STREAMS_MAX"), "{message}");
    assert_eq!(list(&other).send().await.status(), 200);
    drop(first);
    while list(&acme).send().await.status() != 200 {
        tokio::task::yield_now().await;
    }
    app.close().await;
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_and_no_others() {
    let app = guarded(Options::default(), Arc::default()).await;
    let (acme, other) =
        (token(&app, "acme", Role::Viewer).await, token(&app, "acme", Role::Viewer).await);
    let mut ended = get(&app, LIST).header("authorization", &acme).send().await;
    let mut stays = get(&app, LIST).header("authorization", &other).send().await;
    for stream in [&mut ended, &mut stays] {
        assert!(stream.chunk().await.expect("a stream").is_some());
    }
    let id = acme.split('_').nth(1).expect("the ID of the token");
    assert!(app.control.secrets.tokens.revoke(&Tenant::new("acme"), id).await.expect("an answer"));
    // Without an end this reads for as long as the test may run.
    while ended.chunk().await.expect("an end").is_some() {}
    let still = get(&app, "/api/whoami").header("authorization", &other);
    assert_eq!(still.send().await.status(), 200);
    let next = tokio::time::timeout(Duration::from_millis(1), stays.chunk()).await;
    assert!(!matches!(next, Ok(Ok(None) | Err(_))), "a stream of another token ended");
    app.close().await;
}

#[tokio::test]
async fn an_expired_token_ends_its_streams() {
    let clock = Arc::new(SimClock::default());
    let app = guarded(Options::default(), clock.clone()).await;
    let lasts = Some(Duration::from_secs(60));
    let request = TokenRequest { name: "brief".into(), role: Role::Viewer, lasts, pool: None };
    let made =
        app.control.secrets.tokens.create(&Tenant::default(), request).await.expect("a token");
    let bearer = format!("Bearer {}", made.1);
    let mut stream = get(&app, LIST).header("authorization", &bearer).send().await;
    assert!(stream.chunk().await.expect("a stream").is_some());
    clock.advance(Duration::from_secs(61));
    while stream.chunk().await.expect("an end").is_some() {}
    app.close().await;
}

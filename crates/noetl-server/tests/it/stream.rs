use noetl_testkit::TestApp;

use crate::api::{finished, get, post, report, started};

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
async fn a_reader_goes_on_where_it_was() {
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
async fn what_is_committed_wakes_a_stream() {
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
async fn a_server_that_stops_ends_its_streams() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let mut answer = get(&app, &format!("/api/executions/{id}/stream")).send().await;
    assert!(answer.chunk().await.expect("a stream").is_some());
    // It would wait for ever if a stream did not let go.
    app.close().await;
    while answer.chunk().await.expect("an end").is_some() {}
}

#[tokio::test]
async fn streams_are_counted() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let path = format!("/api/executions/{id}/stream");
    let mut open = Vec::new();
    for _ in 0..256 {
        let answer = get(&app, &path).send().await;
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    let (status, body) = get(&app, &path).answer().await;
    assert_eq!((status, &body["code"]), (503, &"too_many_streams".into()), "{body}");
    drop(open);
    app.close().await;
}

use futures::StreamExt;
use noetl_model::{Failure, FailureKind, Value};
use noetl_test_services::nats::TestNats;
use noetl_tools::{Options, OutputLimits, ToolRegistry};
use serde_json::json;

use crate::harness::{call, registry};

struct Fixture {
    nats: TestNats,
    tools: ToolRegistry,
}

impl Fixture {
    fn new() -> Self {
        Self { nats: TestNats::start(), tools: registry() }
    }

    async fn run(&self, operation: &str, mut config: Value) -> Result<Value, Failure> {
        config["operation"] = operation.into();
        config["url"] = self.nats.url().into();
        self.tools.run("nats", call(config)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_message_is_acked_by_its_stream() {
    let fixture = Fixture::new();
    let context = fixture.nats.context().await;
    let stream = async_nats::jetstream::stream::Config {
        name: "ORDERS".into(),
        subjects: vec!["orders.>".into()],
        ..Default::default()
    };
    context.create_stream(stream).await.unwrap();
    let message = json!({
        "subject": "orders.new", "data": {"id": 1}, "headers": {"X-Kind": "a"}, "msg_id": "m1",
    });
    let answer = fixture.run("publish", message.clone()).await.unwrap();
    assert_eq!(
        answer,
        json!({
            "status": "published", "subject": "orders.new", "bytes": 8, "acknowledged": true,
            "stream": "ORDERS", "sequence": 1, "duplicate": false,
        })
    );
    assert_eq!(fixture.run("publish", message).await.unwrap()["duplicate"], true);
    let messages = fixture.nats.messages("ORDERS").await;
    assert_eq!(messages.len(), 1);
    assert_eq!(
        (messages[0].id.as_str(), messages[0].payload.as_slice()),
        ("m1", b"{\"id\":1}".as_slice())
    );
}

/// Waits until the server knows of the client's subscriptions.
async fn settled(client: &async_nats::Client) {
    let answer = client.request(client.new_inbox(), "".into()).await;
    assert_eq!(answer.unwrap_err().kind(), async_nats::RequestErrorKind::NoResponders);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_core_nats_message_reaches_its_subscribers() {
    let fixture = Fixture::new();
    let client = fixture.nats.context().await.client();
    let mut captured = client.subscribe("news.*").await.unwrap();
    settled(&client).await;
    let message = json!({"subject": "news.a", "payload": "00501", "headers": {"A": "b"}});
    let answer = fixture.run("publish", message).await.unwrap();
    assert_eq!(answer["acknowledged"], false);
    let message = captured.next().await.unwrap();
    assert_eq!(message.payload.as_ref(), b"00501");
    assert_eq!(message.headers.unwrap().get("A").unwrap().as_str(), "b");
    let wanted = json!({"subject": "news.a", "jetstream": true});
    let failure = fixture.run("publish", wanted).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);

    let mut asked = client.subscribe("sum").await.unwrap();
    settled(&client).await;
    let answering = tokio::spawn(async move {
        let question = asked.next().await.unwrap();
        assert_eq!(question.payload.as_ref(), b"[1,2]");
        client.publish(question.reply.unwrap(), "{\"sum\": 3}".into()).await.unwrap();
        client.flush().await.unwrap();
    });
    let answer = fixture.run("request", json!({"subject": "sum", "data": [1, 2]})).await.unwrap();
    assert_eq!(answer, json!({"subject": "sum", "headers": {}, "data": {"sum": 3}}));
    answering.await.unwrap();
    let failure = fixture.run("request", json!({"subject": "nobody"})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_put_read_listed_and_removed() {
    let fixture = Fixture::new();
    let failure = fixture.run("kv_get", json!({"bucket": "b", "key": "k"})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);
    assert!(failure.message.contains("`create_bucket: true`"), "{failure}");

    let put = json!({"bucket": "b", "key": "a.k", "value": {"n": 1}, "create_bucket": true});
    assert_eq!(fixture.run("kv_put", put).await.unwrap()["revision"], 1);
    let get = json!({"bucket": "b", "key": "a.k"});
    let answer = fixture.run("kv_get", get.clone()).await.unwrap();
    assert_eq!(
        answer,
        json!({"bucket": "b", "key": "a.k", "found": true, "revision": 1, "value": {"n": 1}})
    );
    let text = json!({"bucket": "b", "key": "zip", "value": "00501"});
    fixture.run("kv_put", text).await.unwrap();
    let answer = fixture.run("kv_get", json!({"bucket": "b", "key": "zip"})).await.unwrap();
    assert_eq!(answer["value"], "00501");

    let stale = json!({"bucket": "b", "key": "a.k", "value": "x", "revision": 7});
    assert_eq!(fixture.run("kv_put", stale).await.unwrap_err().kind, FailureKind::DbConstraint);
    let again = json!({"bucket": "b", "key": "a.k", "value": "x", "create": true});
    assert_eq!(fixture.run("kv_put", again).await.unwrap_err().kind, FailureKind::DbConstraint);
    let next = json!({"bucket": "b", "key": "a.k", "value": "x", "revision": 1});
    fixture.run("kv_put", next).await.unwrap();

    let answer = fixture.run("kv_keys", json!({"bucket": "b"})).await.unwrap();
    assert_eq!(answer, json!({"bucket": "b", "count": 2, "keys": ["a.k", "zip"]}));
    let answer = fixture.run("kv_keys", json!({"bucket": "b", "prefix": "a."})).await.unwrap();
    assert_eq!(answer["keys"], json!(["a.k"]));
    fixture.run("kv_delete", get.clone()).await.unwrap();
    let answer = fixture.run("kv_get", get).await.unwrap();
    assert_eq!(answer, json!({"bucket": "b", "key": "a.k", "found": false, "value": null}));
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_put_read_listed_and_removed() {
    let fixture = Fixture::new();
    let put = json!({
        "bucket": "files", "name": "a.bin", "data": "AP8=", "encoding": "base64",
        "create_bucket": true,
    });
    let answer = fixture.run("object_put", put).await.unwrap();
    assert_eq!(answer["size"], 2);
    let get = json!({"bucket": "files", "name": "a.bin"});
    let answer = fixture.run("object_get", get.clone()).await.unwrap();
    assert_eq!(
        answer,
        json!({"bucket": "files", "name": "a.bin", "size": 2, "data": "AP8=", "encoding": "base64"})
    );
    let large = "x".repeat(300_000);
    let put = json!({"bucket": "files", "name": "large", "data": large});
    fixture.run("object_put", put).await.unwrap();
    let answer =
        fixture.run("object_get", json!({"bucket": "files", "name": "large"})).await.unwrap();
    assert_eq!(answer["data"], large);
    let answer = fixture.run("object_list", json!({"bucket": "files"})).await.unwrap();
    assert_eq!(
        answer["objects"],
        json!([{"name": "a.bin", "size": 2}, {"name": "large", "size": 300_000}])
    );

    let limits = OutputLimits { nats_payload: 1000, ..OutputLimits::default() };
    let tools = ToolRegistry::standard(Options { limits, ..Options::default() });
    let config = json!({
        "operation": "object_get", "url": fixture.nats.url(), "bucket": "files", "name": "large",
    });
    let failure = tools.run("nats", call(config)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutputLimit);
    assert!(failure.message.contains("`nats_payload`"), "{failure}");

    fixture.run("object_delete", get.clone()).await.unwrap();
    let failure = fixture.run("object_get", get).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_fails_the_step_in_time() {
    let mut fixture = Fixture::new();
    let message = json!({"subject": "a", "data": 1, "timeout": "300ms"});
    fixture.run("publish", message.clone()).await.unwrap();
    fixture.nats.stop();
    let failure = fixture.run("publish", message.clone()).await.unwrap_err();
    assert!(failure.retryable, "{failure}");
    fixture.nats.restart();
    let message = json!({"subject": "a", "data": 1});
    fixture.run("publish", message).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_password_is_an_auth_failure_and_a_correct_one_connects() {
    let nats = TestNats::start_with(&["--user", "u", "--pass", "p"]);
    let mut config = json!({"operation": "publish", "url": nats.url(), "subject": "a"});
    let failure = registry().run("nats", call(config.clone())).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Auth);
    config["auth"] = json!({"type": "nats", "user": "u", "password": "p"});
    registry().run("nats", call(config)).await.unwrap();
}

#[tokio::test]
async fn errors_name_the_invalid_setting() {
    let url = "nats://127.0.0.1:1";
    for (config, message) in [
        (json!({"operation": "publish"}), "a nats step needs `auth` or a `url`"),
        (json!({"url": url}), "a nats step needs an `action`"),
        (json!({"url": url, "operation": "shout"}), "`operation` must be publish, request"),
        (json!({"url": 5}), "`url` must be a text, not a number"),
        (
            json!({"url": url, "operation": "publish", "subject": "a"}),
            "the NATS server cannot be used",
        ),
    ] {
        let failure = registry().run("nats", call(config)).await.unwrap_err();
        assert!(failure.message.starts_with(message), "{failure}");
    }
}

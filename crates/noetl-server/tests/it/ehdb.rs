//! Executions and events as the published terminal reads them, on every store.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::api::{get, shown, started};
use crate::stores::on_every_store;

#[tokio::test(flavor = "multi_thread")]
async fn executions_and_events_are_read_with_ids_as_text() {
    on_every_store(async |app| {
        let first = started(app).await;
        let second = started(app).await;
        let listed = get(app, "/api/ehdb/executions?limit=1&status=running").answer().await;
        insta::allow_duplicates! { assert_snapshot!(shown(listed.0, listed.1.clone()), @r#"
        200
        {
          "action": "executions",
          "tier": "eventlog",
          "returned": 1,
          "next_cursor": "[id]",
          "executions": [
            {
              "execution_id": "[id]",
              "status": "RUNNING",
              "terminal": false,
              "current_node": "start",
              "path": "tests/greet",
              "catalog_id": "[id]",
              "parent_execution_id": null,
              "event_count": 3,
              "started_at": "[time]",
              "completed_at": null
            }
          ]
        }
        "#); }
        assert_eq!(listed.1["next_cursor"], second.to_string());
        let rest = get(app, "/api/ehdb/executions?limit=1&offset=1&path=GREET").answer().await.1;
        assert_eq!(rest["executions"][0]["execution_id"], first.to_string());
        let (_, all) = get(app, "/api/ehdb/executions").answer().await;
        assert_eq!((&all["returned"], &all["next_cursor"]), (&2.into(), &Value::Null));
        let one = get(app, &format!("/api/ehdb/executions/{first}")).answer().await;
        assert_eq!((one.0, &one.1["exists"]), (200, &true.into()));
        assert_eq!(one.1["state"]["status"], "RUNNING");
        let none = get(app, "/api/ehdb/executions/1").answer().await;
        insta::allow_duplicates! { assert_snapshot!(shown(none.0, none.1), @r#"
        200
        {
          "action": "execution",
          "tier": "eventlog",
          "execution_id": "1",
          "exists": false,
          "state": null
        }
        "#); }
        let path = format!("/api/ehdb/executions/{first}/events");
        let (_, whole) = get(app, &path).answer().await;
        let count = whole["returned"].as_u64().expect("a count");
        assert!(count > 2, "{whole}");
        let (mut walked, mut after) = (Vec::new(), String::new());
        for _ in 0..count {
            let page = get(app, &format!("{path}?limit=1{after}")).answer().await.1;
            walked.extend(page["events"].as_array().expect("events").clone());
            let cursor = page["next_cursor"].as_str().expect("a full page");
            after = format!("&after={cursor}");
        }
        assert_eq!(Value::Array(walked), whole["events"]);
        let end = get(app, &format!("{path}?limit=1{after}")).answer().await.1;
        assert_eq!((&end["returned"], &end["next_cursor"]), (&0.into(), &Value::Null));
        let unknown = get(app, "/api/ehdb/executions/1/events").answer().await;
        assert_eq!((unknown.0, &unknown.1["exists"]), (200, &false.into()));
        for wrong in [
            format!("{path}?after=1"),
            format!("{path}?limit=x"),
            "/api/ehdb/executions?status=gone".to_owned(),
            "/api/ehdb/executions/x".to_owned(),
        ] {
            assert_eq!(get(app, &wrong).answer().await.0, 400, "{wrong}");
        }
        let index = get(app, "/api/ehdb").answer().await;
        assert_eq!((index.0, &index.1["tier"]), (200, &json!("eventlog")));
    })
    .await;
}

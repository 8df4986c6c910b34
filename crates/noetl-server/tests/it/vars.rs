//! Variables of an execution, on every store.

use insta::assert_snapshot;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{ask, get, post, shown, started};
use crate::stores::on_every_store;

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_set_read_and_removed() {
    on_every_store(async |app| {
        let id = started(app).await;
        let path = format!("/api/vars/{id}");
        let set = json!({"variables": [
            {"var_name": "b", "var_value": {"n": 1}, "var_type": "computed", "source_step": "start"},
            {"var_name": "a", "var_value": null},
        ]});
        let (status, body) = post(app, &path, set.to_string()).answer().await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, body), @r#"
        200
        {
          "execution_id": "[id number]",
          "variables_set": 2,
          "status": "ok"
        }
        "#); }
        let flat = r#"{"c": [1], "variables": "a value of its own"}"#;
        assert_eq!(post(app, &path, flat).answer().await.1["variables_set"], 2);
        let (_, listed) = get(app, &path).answer().await;
        let names: Vec<&Value> =
            listed.as_array().expect("a list").iter().map(|one| &one["var_name"]).collect();
        assert_eq!(names, ["a", "b", "c", "variables"]);
        let (status, one) = get(app, &format!("{path}/b")).answer().await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, one), @r#"
        200
        {
          "var_name": "b",
          "var_type": "computed",
          "var_value": {
            "n": 1
          },
          "source_step": "start",
          "created_at": "[time]",
          "accessed_at": "[time]",
          "access_count": 1
        }
        "#); }
        assert_eq!(get(app, &format!("{path}/b")).answer().await.1["access_count"], 2);
        let gone = ask(app, Method::DELETE, &format!("{path}/b")).answer().await;
        let expected = json!({"execution_id": id, "var_name": "b", "status": "deleted"});
        assert_eq!(gone, (200, expected));
        for verb in [Method::GET, Method::DELETE] {
            let (status, body) = ask(app, verb, &format!("{path}/b")).answer().await;
            assert_eq!((status, &body["code"]), (404, &"variable_not_found".into()));
        }
        let cleared = ask(app, Method::DELETE, &path).answer().await;
        let expected = json!({"execution_id": id, "variables_deleted": 3, "status": "ok"});
        assert_eq!(cleared, (200, expected));
        assert_eq!(get(app, &path).answer().await, (200, json!([])));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_stores_no_variables() {
    on_every_store(async |app| {
        let id = started(app).await;
        let path = format!("/api/vars/{id}");
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        for (body, status, code) in [
            (json!({"variables": [{"var_name": "a", "var_value": 1}, {"var_name": "b", "var_value": 2, "var_type": "guess"}]}), 422, "invalid_var_type"),
            (json!({"variables": [{"var_name": "a", "var_value": 1}, {"var_value": 2}]}), 422, "invalid_body"),
            (json!({"variables": [{"var_name": "a", "var_value": 1}, {"var_name": " ", "var_value": 2}]}), 422, "invalid_name"),
            (json!({"a": 1, "": 2}), 422, "invalid_name"),
            (json!({"a": 1, "b": "x\u{0}"}), 422, "nul_character"),
            (json!([1]), 422, "invalid_body"),
        ] {
            let (actual, answer) = post(app, &path, body.to_string()).answer().await;
            assert_eq!((actual, &answer["code"]), (status, &code.into()), "{body}: {answer}");
        }
        let (status, _) = post(app, &path, json!({"a": 1, "b": deep}).to_string()).answer().await;
        assert!((400..500).contains(&status), "{status}");
        assert_eq!(get(app, &path).answer().await.1, json!([]));
        let (status, body) = post(app, "/api/vars/1", r#"{"a":1}"#).answer().await;
        assert_eq!((status, &body["code"]), (404, &"execution_not_found".into()));
        assert_eq!(get(app, "/api/vars/x").answer().await.0, 400);
        assert_eq!(post(app, &path, "{}").answer().await.1["variables_set"], 0);
    })
    .await;
}

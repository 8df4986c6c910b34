use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use noetl_model::FailureKind;
use noetl_tools::{Options, OutputLimits, ToolRegistry};
use serde_json::json;

use crate::harness::{call, map, registry, run};

#[tokio::test]
async fn a_script_is_read_from_the_playbook_a_file_or_a_url() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program.py");
    std::fs::write(&path, "def main(name): return 'hello ' + name").unwrap();
    let app = Router::new().route(
        "/program.py",
        get(|headers: HeaderMap| async move {
            let token = headers.get("authorization").map_or("", |value| value.to_str().unwrap());
            format!("result = name + ' and {token}'")
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/program.py", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });

    let tools = registry();
    for (script, expected) in [
        (json!({"source": {"type": "inline", "code": "result = name * 2"}}), "AdaAda"),
        (json!({"source": {"type": "file", "path": path}}), "hello Ada"),
        (json!({"uri": format!("file://{}", path.display())}), "hello Ada"),
        (json!({"uri": path, "source": {"type": "file"}}), "hello Ada"),
        (json!({"source": {"type": "http", "url": url}}), "Ada and "),
        (
            json!({"uri": url, "source": {"auth": {"type": "bearer", "token": "t"}}}),
            "Ada and Bearer t",
        ),
    ] {
        let mut step = call(json!({"script": script}));
        step.input = map(json!({"name": "Ada"}));
        assert_eq!(tools.run("python", step).await, Ok(json!(expected)), "{script}");
    }
}

#[tokio::test]
async fn errors_name_the_missing_script() {
    for (script, message) in [
        (json!("program.py"), "`script` must be a map such as"),
        (json!({}), "`script.source` of type inline needs the program under `code`"),
        (json!({"source": {"type": "file"}}), "`script.source` of type file needs a `path`"),
        (
            json!({"source": {"type": "file", "path": "nowhere.py"}}),
            "the program 'nowhere.py' cannot be read",
        ),
        (json!({"source": {"type": "http"}}), "`script.source` of type http needs a `url`"),
        (
            json!({"source": {"type": "http", "url": "http://127.0.0.1:1/"}}),
            "the step's program could not be fetched",
        ),
        (
            json!({"source": {"type": "s3"}}),
            "`script.source.type` must be inline, file or http, not 's3'",
        ),
        (
            json!({"uri": "gcs://bucket/a.py"}),
            "`script.source.type` must be inline, file or http, not 'gcs'",
        ),
    ] {
        let failure = run("python", json!({"script": script})).await.unwrap_err();
        assert!(failure.message.starts_with(message), "{failure}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.py");
    std::fs::write(&path, "#".repeat(200)).unwrap();
    let limits = OutputLimits { python_script: 100, ..OutputLimits::default() };
    let tools = ToolRegistry::standard(Options { limits, ..Options::default() });
    let step = call(json!({"script": {"source": {"type": "file", "path": path}}}));
    let failure = tools.run("python", step).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutputLimit);
    assert!(failure.message.contains("`python_script`"), "{failure}");
}

#[tokio::test]
async fn worker_variables_are_in_the_context() {
    let code = "result = [context.get('start'), context['ctx']['n'], context['step'], \
                context['args'], str(uuid.UUID(int=1))[-1]]";
    let mut step = call(json!({"code": code}));
    step.context = map(json!({"start": {"rows": 2}, "ctx": {"n": 1}, "step": "not this"}));
    step.step = Arc::from("second");
    step.input = map(json!({"a": 1}));
    let answer = registry().run("python", step).await;
    assert_eq!(answer, Ok(json!([{"rows": 2}, 1, "second", {"a": 1}, "1"])));
}

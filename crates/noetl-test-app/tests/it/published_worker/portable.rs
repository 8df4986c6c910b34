//! The published worker runs the examples that are marked as portable.

use std::sync::Arc;

use noetl_model::Map;
use noetl_store::Store;
use noetl_store_postgres::PostgresStore;
use noetl_store_sqlite::SqliteStore;
use noetl_test_app::TestApp;
use noetl_test_app::published_worker::PublishedWorker;
use noetl_test_services::nats::TestNats;
use noetl_test_services::postgres::TestDatabase;
use serde_json::Value;

use crate::published_worker::fixture::{app_over, ended, execute, options, ready, register};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Comment that marks an example as portable.
const MARK: &str = "# Portable:";

struct Example {
    name: String,
    text: String,
    prints: Value,
}

/// Returns the text of every example, and the marked ones.
fn examples() -> (Vec<String>, Vec<Example>) {
    let (mut all, mut marked) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(EXAMPLES).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("kind: Playbook") {
            all.push(text.clone());
        }
        if !text.lines().any(|line| line.starts_with(MARK)) {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let head: Vec<&str> =
            text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        let head = head.join(" ");
        let (_, prints) = head.split_once("Prints: ").unwrap_or_default();
        let mut prints = serde_json::Deserializer::from_str(prints).into_iter::<Value>();
        let prints = prints.next().and_then(Result::ok);
        let prints = prints.unwrap_or_else(|| panic!("{name} does not say what it prints"));
        marked.push(Example { name, text, prints });
    }
    (all, marked)
}

async fn run_all(app: &TestApp, nats: &TestNats) {
    ready(nats).await;
    let workers = [
        PublishedWorker::start(options(app, nats, "w1")),
        PublishedWorker::start(options(app, nats, "w2")),
    ];
    let (all, marked) = examples();
    assert!(marked.len() >= 10, "{} examples are marked", marked.len());
    for text in &all {
        register(app, text).await;
    }
    let mut troubles = Vec::new();
    let mut begun = Vec::new();
    for example in marked {
        begun.push((execute(app, &path_of(&example.text), Map::new()).await, example));
    }
    for (id, example) in begun {
        let (status, result) = ended(app, id).await;
        if status != "COMPLETED" || result.as_ref() != Some(&example.prints) {
            let error = app.client.status(id).await.unwrap().error;
            troubles.push(format!("{}: {status} {result:?} {error:?}", example.name));
        }
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
    for worker in workers {
        assert!(!worker.is_over());
        worker.kill().await;
    }
}

fn path_of(text: &str) -> String {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("path: "));
    line.expect("an example has a path").trim().to_owned()
}

async fn run_on(store: Arc<dyn Store>) {
    let nats = TestNats::start();
    let app = app_over(&nats, store).await;
    run_all(&app, &nats).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn portable_examples_return_their_documented_result_on_sqlite() {
    let directory = tempfile::TempDir::new().unwrap();
    let options = noetl_store_sqlite::Options::file(directory.path().join("noetl.db"));
    run_on(Arc::new(SqliteStore::open(options).unwrap())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn portable_examples_return_their_documented_result_on_postgres() {
    let database = TestDatabase::new();
    let options = noetl_store_postgres::Options::new(&database.url()).unwrap();
    run_on(Arc::new(PostgresStore::open(options).await.unwrap())).await;
}

use std::path::Path;
use std::process::Command;

use noetl_model::{ExecutionId, shard_for};
use rustix::process::Signal;

use crate::dev_process::DevProcess;
use crate::noetl::{Home, PROGRAM, one_step};

/// `NOETL_SHARDS` with these files of a directory.
fn shards(home: &Path, names: &[&str]) -> String {
    let urls = names.iter().map(|name| format!("sqlite://{}", home.join(name).display()));
    urls.collect::<Vec<_>>().join(",")
}

/// Returns the error of a `noetl dev` that doesn't start.
fn refused(home: &Path, variables: &[(&str, &str)]) -> String {
    let ended = Command::new(PROGRAM)
        .args(["dev", "--port", "0", "--data"])
        .arg(home.join("data"))
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let output = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(3), "{output}");
    output.replace(home.to_str().unwrap(), "[home]")
}

#[tokio::test]
async fn executions_are_spread_over_shard_files_and_readable_after_a_restart() {
    let home = Home::new();
    let list = shards(home.path(), &["a.db", "b.db"]);
    let variables = [("NOETL_SHARDS", &*list)];
    let process = DevProcess::start_with(&home.path().join("data"), &variables);
    let text = one_step("{kind: noop, result: 7}");
    let mut ids: Vec<ExecutionId> = Vec::new();
    let home_of = |id: &ExecutionId| shard_for(*id, 2);
    while ![0, 1].iter().all(|shard| ids.iter().any(|id| home_of(id) == *shard)) {
        let id = process.execute(&text).await;
        assert_eq!(process.ended(id).await, "COMPLETED");
        ids.push(id);
    }
    let (code, output) = process.stop(Signal::TERM);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("2 shards: 0 "), "{output}");
    assert!(home.path().join("a.db").exists() && home.path().join("b.db").exists());
    assert!(!home.path().join("data/noetl.db").exists());

    let process = DevProcess::start_with(&home.path().join("data"), &variables);
    for id in ids {
        let detail = process.client.execution(id).await.unwrap();
        assert_eq!(detail.result, Some(serde_json::json!(7)));
    }
}

#[tokio::test]
async fn changed_shard_lists_are_rejected() {
    let home = Home::new();
    let path = home.path();
    let list = shards(path, &["a.db", "b.db"]);
    let process = DevProcess::start_with(&path.join("data"), &[("NOETL_SHARDS", &list)]);
    process.stop(Signal::TERM);

    for names in [&["b.db", "a.db"][..], &["a.db", "b.db", "c.db"], &["a.db"]] {
        let output = refused(path, &[("NOETL_SHARDS", &shards(path, names))]);
        assert!(output.contains(" of 2 before"), "{output}");
        assert!(output.contains("shard 0, [home]/"), "{output}");
    }
    let alone = shards(path, &["b.db"]);
    let output = refused(path, &[("NOETL_DATABASE_URL", &alone)]);
    assert!(output.contains("the database is shard 1 of 2"), "{output}");
    let both = [("NOETL_SHARDS", &*list), ("NOETL_DATABASE_URL", &*alone)];
    let output = refused(path, &both);
    assert!(output.contains("NOETL_SHARDS and a database URL are both given"), "{output}");
    let output = refused(path, &[("NOETL_SHARDS", "host=db;usr=ada")]);
    assert!(output.contains("NOETL_SHARDS, entry 1: unknown key 'usr'"), "{output}");
}

#[tokio::test]
async fn a_database_with_executions_is_rejected_as_a_shard() {
    let home = Home::new();
    let path = home.path();
    let process = DevProcess::start(&path.join("data"));
    let id = process.execute(&one_step("{kind: noop}")).await;
    process.ended(id).await;
    process.stop(Signal::TERM);
    let list = shards(path, &["new.db", "data/noetl.db"]);
    let output = refused(path, &[("NOETL_SHARDS", &list)]);
    let expected = "shard 1, [home]/data/noetl.db: it holds executions of a server without shards";
    assert!(output.contains(expected), "{output}");
    // The other one was not marked by the start that was refused.
    let list = shards(path, &["other.db", "new.db"]);
    DevProcess::start_with(&path.join("data"), &[("NOETL_SHARDS", &list)]).stop(Signal::TERM);
}

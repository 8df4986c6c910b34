//! Verbs as the published command line has them.

use insta::assert_snapshot;
use noetl_test_services::postgres::TestDatabase;

use super::Site;
use crate::noetl::{one_step, playbook};

#[test]
fn execute_has_the_published_verbs() {
    let site = Site::new();
    let echo = "  - {step: start, tool: {kind: noop, result: '{{ workload }}'}}\n";
    site.register(&playbook("{who: world}", echo));
    site.home.write("input.json", r#"{"who": "Ada", "n": 1}"#);
    let output = site.raw(&["execute", "playbook", "tests/test", "-i", "input.json", "-j"]);
    let id =
        output.json()["execution_id"].as_str().unwrap_or_else(|| panic!("{output:?}")).to_owned();
    site.raw(&["status", &id, "--follow"]);
    let output = site.raw(&["execute", "status", &id, "--json"]);
    assert_eq!((output.code, &output.json()["completed"]), (Some(0), &true.into()));
    site.home.write("more.json", r#"{"n": 2, "m": {"a": 1}}"#);
    let output =
        site.raw(&["execute", "rerun", &id, "-i", "more.json", "--set", "workload.m.b=2", "-j"]);
    let id =
        output.json()["execution_id"].as_str().unwrap_or_else(|| panic!("{output:?}")).to_owned();
    site.raw(&["status", &id, "--follow"]);
    let detail = site.raw(&["events", &id, "--limit", "1", "--json"]).json();
    assert_eq!(
        detail["events"][0]["context"]["workload"],
        serde_json::json!({"who": "Ada", "n": 2, "m": {"a": 1, "b": 2}})
    );
    let none = site.noetl(&["execute"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("<PATH>"), "{}", none.stderr);
}

#[test]
fn run_starts_a_playbook_on_a_server() {
    let site = Site::new();
    site.register(&one_step("{kind: noop}"));
    let output =
        site.raw(&["run", "tests/test", "-r", "distributed", "-V", "1", "--workload", "{}", "-j"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let id =
        output.json()["execution_id"].as_str().unwrap_or_else(|| panic!("{output:?}")).to_owned();
    assert_eq!(site.raw(&["status", &id, "--follow"]).code, Some(0));
    assert_snapshot!(site.noetl(&["run", "test.yaml", "-r", "distributed"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: test.yaml is a file, and a server runs what is registered
      help: register it with `noetl register playbook -f test.yaml`, then name its path
    ");
    assert_snapshot!(site.noetl(&["run", "a", "-r", "distributed", "--db", "x"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: --db is for runs here, not for --runtime distributed
    ");
    assert_snapshot!(site.noetl(&["run", "test.yaml", "--endpoint", "http://x"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: --server-url is for --runtime distributed, and this runs here
    ");
}

#[test]
fn a_dry_run_runs_nothing() {
    let site = Site::new();
    let mark = site.home.path().join("ran");
    let touch = format!("{{kind: shell, cmds: ['touch {}']}}", mark.display());
    site.home.write("test.yaml", one_step(&touch));
    assert_snapshot!(site.noetl(&["exec", "test.yaml", "--dry-run"]).transcript(), @r"
    exit: 0
    --- stdout
    --- stderr
    test.yaml: ok, and nothing was run
    ");
    assert!(!mark.exists());
    assert_eq!(site.noetl(&["run", "test.yaml", "--dry-run", "--set", "x"]).code, Some(2));
    let output = site.raw(&["run", "test.yaml", "--json"]);
    assert_eq!(output.json()["status"], "COMPLETED", "{output:?}");
    assert!(mark.exists());
}

#[test]
fn the_server_flag_may_precede_the_verb() {
    let site = Site::new();
    let url = site.dev.client.base().to_string();
    let mut command = site.home.command(["--server-url", &url, "--token", "any", "executions"]);
    let output = site.home.end_of(command.env("HOME", site.home.path()));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "no executions\n"), "{output:?}");
}

#[test]
fn documents_are_loaded_in_batches() {
    let site = Site::new();
    std::fs::create_dir_all(site.home.path().join("books/deep")).unwrap();
    let named = |name: &str| one_step("{kind: noop}").replace("tests/test", name);
    site.home.write("books/a.yaml", named("tests/a"));
    site.home.write("books/deep/b.yml", named("tests/b"));
    site.home.write("books/notes.txt", "no playbook");
    site.home.write("c.yaml", named("tests/c"));
    assert_snapshot!(site.noetl(&["catalog", "load", "books", "--dry-run"]).transcript(), @r"
    exit: 0
    --- stdout
    books/a.yaml
    books/deep/b.yml
    --- stderr
    2 documents would be sent
    ");
    assert_eq!(site.noetl(&["catalog", "list"]).stdout, "no documents\n");
    let load = ["catalog", "load", "books", "c.yaml", "--batch-size", "2"];
    assert_snapshot!(site.noetl(&load).transcript(), @r"
    exit: 0
    --- stdout
    registered tests/a version 1
    registered tests/b version 1
    registered tests/c version 1
    --- stderr
    3 registered, 0 failed
    ");
    site.home.write("books/bad.yaml", named("tests/bad").replace("noop", "noob"));
    let output = site.raw(&["catalog", "load", "books", "c.yaml", "--batch-size", "1", "--json"]);
    let reply = output.json();
    assert_eq!(output.code, Some(2), "{output:?}");
    assert_eq!((&reply["registered"], &reply["failed"]), (&3.into(), &1.into()));
    assert_eq!(reply["results"][1]["index"], 1);
    assert!(output.stderr.contains("error: books/bad.yaml: "), "{}", output.stderr);
    for wrong in [
        &["catalog", "load"][..],
        &["catalog", "load", "c.yaml", "--batch-size", "0"],
        &["catalog", "load", "nowhere"],
    ] {
        assert_eq!(site.noetl(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn an_oversized_document_does_not_prevent_loading_others() {
    let site = Site::new();
    let named = |name: &str| one_step("{kind: noop}").replace("tests/test", name);
    // Every character of the comment needs six in JSON.
    let comment = format!("# {}\n", "\u{1}".repeat(400 << 10));
    site.home.write("a.yaml", named("tests/a"));
    site.home.write("large.yaml", format!("{comment}{}", named("tests/large")));
    let output = site.noetl(&["catalog", "load", "a.yaml", "large.yaml"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(2), "registered tests/a version 1\n"),
        "{output:?}"
    );
    assert!(output.stderr.contains("error: large.yaml: "), "{}", output.stderr);
}

#[test]
fn executions_and_events_have_ids_as_text() {
    let site = Site::new();
    site.register(&one_step("{kind: noop}"));
    let id = site.finished();
    let output =
        site.noetl(&["ehdb", "query", "executions", "--status", "completed", "--limit", "5"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 0
    --- stdout
    ID                  STATUS     PATH        EVENTS  STARTED
    [id]  COMPLETED  tests/test  8       [time]
    --- stderr
    ");
    let output = site.raw(&["ehdb", "query", "execution", &id, "-j"]);
    assert_eq!(output.json()["state"]["execution_id"], *id, "{output:?}");
    let output = site.noetl(&["ehdb", "query", "execution", &id]);
    assert!(output.stdout.contains("status     COMPLETED\nterminal   true\n"), "{}", output.stdout);
    let first = site.raw(&["ehdb", "query", "events", &id, "--limit", "3", "-j"]).json();
    let cursor = first["next_cursor"].as_str().expect("more").to_owned();
    let rest = site.noetl(&["ehdb", "query", "events", &id, "--after", &cursor]);
    assert_eq!(rest.stdout.lines().count(), 6, "{}", rest.stdout);
    for wrong in [["execution", "7"], ["events", "7"]] {
        let output = site.noetl(&["ehdb", "query", wrong[0], wrong[1]]);
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(2), "error: Execution not found: 7\n")
        );
    }
}

#[test]
fn sql_runs_on_postgres_and_is_rejected_on_sqlite() {
    let site = Site::new();
    assert_snapshot!(site.noetl(&["query", "select 1"]).transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: this server keeps its data in SQLite, which runs no SQL of others; stop it and open the file with sqlite3, or use a Postgres store
    ");
    let database = TestDatabase::new();
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let site =
        Site::with(&[("NOETL_DATABASE_URL", &database.url()), ("NOETL_ENCRYPTION_KEY", key)]);
    let output = site.noetl(&[
        "query",
        "select 1 as a, null as b, 'x' as c union all select 2, 'y', 'z' order by a",
    ]);
    assert_snapshot!(output.transcript(), @r"
    exit: 0
    --- stdout
    a  b  c
    1     x
    2  y  z
    --- stderr
    ");
    let output =
        site.raw(&["query", "select count(*) as n from event", "-s", "noetl", "-f", "json"]);
    assert_eq!(output.json()["result"][0]["n"], 0, "{output:?}");
    assert_eq!(site.noetl(&["query", "select 1 where false"]).stdout, "no rows\n");
    assert_eq!(site.noetl(&["query", "selekt"]).code, Some(2));
}

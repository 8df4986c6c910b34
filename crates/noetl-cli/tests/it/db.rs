use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::dev_process::DevProcess;
use crate::noetl::{CommandOutput, Home, one_step};

const NOOP: &str = "{kind: noop}";

/// A home with a database that holds a finished execution.
fn with_a_database() -> Home {
    let home = Home::with(&one_step(NOOP));
    let output = home.noetl(["run", "test.yaml", "--db", "noetl-data/noetl.db"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    home
}

#[test]
fn migrate_creates_a_database_and_reports_it_up_to_date_afterwards() {
    let home = Home::new();
    let output = home.noetl(["db", "migrate"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""));
    assert!(
        output.stderr.starts_with("noetl-data/noetl.db was made: schema version "),
        "{output:?}"
    );
    let output = home.noetl(["db", "migrate"]);
    assert!(output.stderr.starts_with("noetl-data/noetl.db is up to date"), "{output:?}");
    let output = home.noetl(["db", "migrate", "--output", "json"]);
    let output = output.json();
    assert_eq!(output["before"], output["version"]);
}

#[test]
fn an_intact_database_is_reported_as_such() {
    let home = with_a_database();
    let output = home.noetl(["db", "validate"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.starts_with("noetl-data/noetl.db: sound (1 execution, "), "{output:?}");
    let output = home.noetl(["db", "validate", "--output", "json"]).json();
    assert_eq!(
        (output["executions"].as_i64(), &output["problems"]),
        (Some(1), &Value::Array(vec![]))
    );
}

#[test]
fn inspecting_a_missing_database_does_not_create_it() {
    for verb in ["validate", "stats", "purge"] {
        let home = Home::new();
        let output = home.noetl(["db", verb]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""), "{verb}: {output:?}");
        assert!(!home.path().join("noetl-data").exists(), "{verb}");
    }
}

/// Garbage from this page on, counted from the end when negative.
fn damaged_from(page: isize) -> CommandOutput {
    const PAGE: usize = 8192;
    let home = with_a_database();
    let path = home.path().join("noetl-data/noetl.db");
    let mut bytes = fs::read(&path).unwrap();
    let pages = bytes.len() / PAGE;
    let first = if page < 0 { pages - page.unsigned_abs() } else { page.unsigned_abs() };
    bytes[first * PAGE..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    home.noetl(["db", "validate"])
}

#[test]
fn damage_is_reported_with_exit_code_1() {
    // In the schema, and in one table only.
    for page in [1, -1] {
        let output = damaged_from(page);
        assert_eq!(output.code, Some(1), "{page}: {}", output.stderr);
        assert!(output.stderr.contains("wrong: "), "{page}: {}", output.stderr);
        assert!(output.stderr.contains("noetl-data/noetl.db: "), "{page}: {}", output.stderr);
    }
}

#[test]
fn stats_show_the_rows_of_every_table() {
    let home = with_a_database();
    let output = home.noetl(["db", "stats", "--output", "json"]).json();
    let tables = output["tables"].as_array().unwrap();
    let rows = |name: &str| {
        let table = tables.iter().find(|table| table["name"] == name).unwrap();
        assert!(table["bytes"].as_u64().unwrap() > 0, "{name}");
        table["rows"].as_u64().unwrap()
    };
    assert_eq!((rows("execution"), rows("command"), rows("due")), (1, 1, 0));
    assert!(rows("event_append") >= 2);
    let output = home.noetl(["db", "stats"]);
    assert!(
        output.stdout.lines().any(|line| line.starts_with("event_append ")),
        "{}",
        output.stdout
    );
}

#[tokio::test]
async fn a_backup_beside_a_running_server_is_usable() {
    let home = Home::new();
    let dev = DevProcess::start(&home.path().join("noetl-data"));
    let id = dev.execute(&one_step(NOOP)).await;
    assert_eq!(dev.ended(id).await, "COMPLETED");
    let output = home.noetl(["db", "backup", "copy.db", "--output", "json"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.json()["bytes"].as_u64().unwrap() > 0);
    // Inspection works while the server runs; a purge doesn't.
    assert_eq!(home.noetl(["db", "validate"]).code, Some(0));
    assert_eq!(home.noetl(["db", "stats"]).code, Some(0));
    assert_eq!(home.noetl(["db", "purge", "--dry-run"]).code, Some(0));
    let output = home.noetl(["db", "purge"]);
    assert_eq!(output.code, Some(3));
    assert!(output.stderr.contains("is in use by process"), "{}", output.stderr);
    // The server still runs executions.
    let id = dev.execute(&one_step(NOOP)).await;
    assert_eq!(dev.ended(id).await, "COMPLETED");
    assert_eq!(dev.stop(Signal::TERM).0, Some(0));

    let output =
        home.noetl(["db", "validate", "--database-url", "sqlite://copy.db", "--output", "json"]);
    assert_eq!(
        (output.code, &output.json()["executions"]),
        (Some(0), &Value::from(1)),
        "{output:?}"
    );
    assert!(!home.path().join("copy.db.partial").exists());
}

#[test]
fn a_backup_never_overwrites_a_file() {
    let home = with_a_database();
    home.write("copy.db", "something else");
    let output = home.noetl(["db", "backup", "copy.db"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(fs::read_to_string(home.path().join("copy.db")).unwrap(), "something else");
    let output = home.noetl(["db", "backup", "noetl-data/noetl.db"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(home.noetl(["db", "validate"]).code, Some(0));
}

#[test]
fn an_interrupted_backup_is_replaced() {
    let home = with_a_database();
    home.write("copy.db.partial", "half a copy");
    assert_eq!(home.noetl(["db", "backup", "copy.db"]).code, Some(0));
    assert!(!home.path().join("copy.db.partial").exists());
}

#[test]
fn backup_of_postgres_refers_to_pg_dump() {
    let url = "postgres://ada:secret@db.example:5432/noetl";
    let output = Home::new().noetl(["db", "backup", "copy.dump", "--database-url", url]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert!(output.stderr.contains("pg_dump --format=custom"), "{}", output.stderr);
    assert!(!output.stderr.contains("secret"), "{}", output.stderr);
}

#[test]
fn a_purge_reports_retained_rows_with_reasons() {
    let home = with_a_database();
    let arguments = ["db", "purge", "--event-retention-days", "1", "--output", "json"];
    let output = home.noetl(arguments).json();
    assert_eq!(output["removed"]["executions"], 0);
    assert_eq!(output["kept"][0]["reason"], "1 execution has events within the window");
    let partition = output["kept"][0]["partition"].as_str().unwrap();
    assert!(partition.starts_with("event_20"), "{partition}");
    let output = home.noetl(["db", "purge", "--event-retention-days", "1"]);
    assert!(output.stderr.contains("nothing is old enough to go"), "{}", output.stderr);
}

#[test]
fn retention_windows_out_of_range_are_usage_errors() {
    let home = with_a_database();
    for (flag, number) in [
        ("--event-retention-days", "30000"),
        ("--runtime-stale-minutes", "4294967295"),
        ("--command-retention-days", "9223372036854775807"),
    ] {
        let output = home.noetl(["db", "purge", flag, number]);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(output.stderr.contains("is a number up to"), "{}", output.stderr);
        let output = home.noetl(["dev", "--port", "0", flag, number]);
        assert_eq!(output.code, Some(2), "{}", output.stderr);
    }
}

//! `noetl credential reseal`, on the database of a real server.

use noetl_test_app::migrated_database;
use rustix::process::Signal;
use serde_json::json;

use crate::dev_process::DevProcess;
use crate::noetl::{CommandOutput, Home};
use crate::shown::KEY;

const SECRET: &str = "correct horse battery";

/// Runs the program with this server.
fn noetl(home: &Home, server: &DevProcess, arguments: &[&str]) -> CommandOutput {
    let mut command = home.command(arguments);
    command.env("HOME", home.path()).env("NOETL_SERVER_URL", server.client.base().to_string());
    home.end_of(&mut command)
}

/// Stores a credential at the server.
fn set(home: &Home, server: &DevProcess, name: &str) {
    let password = format!("password={SECRET}");
    let words = ["credential", "set", name, "--type", "postgres", "--set", &password];
    let output = noetl(home, server, &words);
    assert_eq!(output.code, Some(0), "{output:?}");
}

/// Checks that the server opens a credential.
fn assert_opens(home: &Home, server: &DevProcess, name: &str) {
    let output = noetl(home, server, &["credential", "get", name, "--include-data", "--json"]);
    assert_eq!(output.json()["data"]["password"], SECRET, "{output:?}");
}

#[test]
fn reseal_binds_the_values_of_a_stopped_server_on_sqlite_once() {
    let home = Home::new();
    let data = home.path().join("data");
    let server = DevProcess::start(&data);
    set(&home, &server, "one");
    set(&home, &server, "two");
    let reseal = ["credential", "reseal", "--data", "data"];
    let output = home.noetl(reseal);
    assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""), "{output:?}");
    assert!(output.stderr.contains("data/noetl.db is in use by process"), "{output:?}");
    assert_eq!(server.stop(Signal::TERM).0, Some(0));

    let sentence = |count: u64| {
        format!("data/noetl.db: every value is bound to its tenant and name ({count} resealed)\n")
    };
    let output = home.noetl(reseal);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{output:?}");
    assert_eq!(output.stderr, sentence(2));
    let again = home.noetl(reseal);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{again:?}");
    assert_eq!(again.stderr, sentence(0));
    let output = home.noetl(["credential", "reseal", "--data", "data", "--output", "json"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    // Two credentials, and the two markers that reseal stores.
    let expected = json!({
        "database": "data/noetl.db", "resealed": 0, "bound": 4, "problems": [], "more": 0,
        "complete": true,
    });
    assert_eq!(output.json(), expected);

    let server = DevProcess::start(&data);
    assert_opens(&home, &server, "one");
    assert_opens(&home, &server, "two");
}

#[test]
fn reseal_runs_beside_a_server_on_postgres() {
    let database = migrated_database();
    let url = database.url();
    let home = Home::new();
    let server = DevProcess::start_on(&url, 1, &[("NOETL_ENCRYPTION_KEY", KEY)]);
    set(&home, &server, "before");
    let reseal = || {
        let words = ["credential", "reseal", "--database-url", &url, "--output", "json"];
        let output = home.end_of(home.command(words).env("NOETL_ENCRYPTION_KEY", KEY));
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
        output.json()
    };
    let first = reseal();
    assert_eq!(first["complete"], true, "{first}");
    assert_eq!(first["resealed"], 1, "{first}");
    // The server follows: what it writes from here on is bound, and it opens both.
    set(&home, &server, "after");
    let second = reseal();
    let expected = (&json!(0), &json!(4), &json!(true));
    assert_eq!((&second["resealed"], &second["bound"], &second["complete"]), expected, "{second}");
    assert_opens(&home, &server, "before");
    assert_opens(&home, &server, "after");
}

#[test]
fn reseal_without_the_key_changes_nothing_and_lists_values_that_fail_to_decrypt() {
    let home = Home::new();
    let data = home.path().join("data");
    let server = DevProcess::start(&data);
    set(&home, &server, "one");
    assert_eq!(server.stop(Signal::TERM).0, Some(0));
    let output = home.noetl(["credential", "reseal", "--data", "nowhere"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.starts_with("error: there is no encryption key\n"), "{output:?}");
    let words = ["credential", "reseal", "--data", "data", "--output", "json"];
    let output = home.end_of(home.command(words).env("NOETL_ENCRYPTION_KEY", KEY));
    assert_eq!(output.code, Some(1), "{output:?}");
    let output = output.json();
    assert_eq!((&output["complete"], &output["resealed"]), (&json!(false), &json!(0)), "{output}");
    assert!(output["problems"][0].as_str().unwrap().starts_with("credential "), "{output}");
    let server = DevProcess::start(&data);
    assert_opens(&home, &server, "one");
}

use insta::assert_snapshot;

use super::Site;
use crate::noetl::Home;

/// Returns the URL of an unused port.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn an_unreachable_server_error_explains_how_to_start_one() {
    let home = Home::new();
    let url = nobody();
    for verb in [
        &["executions"][..],
        &["status", "1", "--follow"],
        &["execute", "a"],
        &["events", "1", "--follow"],
        &["token", "list"],
    ] {
        let output = home.end_of(home.command(verb).args(["--server-url", &url]));
        assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""), "{verb:?}");
        assert!(
            output.stderr.starts_with(&format!("error: {url}: no answer")),
            "{}",
            output.stderr
        );
        assert!(output.stderr.contains("start a server with `noetl dev`"), "{}", output.stderr);
    }
}

#[test]
fn a_server_without_the_api_is_reported() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let page = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
            let _ = stream.write_all(page.as_bytes());
        }
    });
    let home = Home::new();
    for verb in [&["executions"][..], &["events", "1", "--follow"]] {
        let output = home.end_of(home.command(verb).args(["--server-url", &url]));
        assert_eq!(output.code, Some(3), "{output:?}");
        assert!(output.stderr.contains("the answer is not one of a control plane"), "{output:?}");
    }
}

#[test]
fn invalid_calls_are_reported_and_change_nothing() {
    let site = Site::new();
    for verb in ["status", "events", "why", "cancel", "retry", "rerun", "fork", "logs"] {
        let output = site.raw(&[verb, "4711"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{verb}: {output:?}");
        assert!(output.stderr.contains("4711"), "{verb}: {}", output.stderr);
        assert_eq!(site.raw(&[verb, "one"]).code, Some(2), "{verb}");
    }
    for verb in ["status", "events", "logs"] {
        assert_eq!(site.raw(&[verb, "4711", "--follow"]).code, Some(2), "{verb}");
    }
    assert_snapshot!(site.noetl(&["execute", "no/such"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: Playbook not found: no/such
    ");
    assert_snapshot!(site.noetl(&["execute", "a", "--payload", "{"]).transcript(), @r#"
    exit: 2
    --- stdout
    --- stderr
    error: the payload in --payload is not JSON: EOF while parsing an object at line 1 column 1
      help: a payload is a JSON object such as {"who": "Ada"}
    "#);
    assert_snapshot!(site.noetl(&["register", "playbook", "-f", "none.yaml"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: could not read none.yaml: No such file or directory (os error 2)
      help: examples/hello.yaml is a playbook to begin with
    ");
    assert_snapshot!(site.noetl(&["register", "playbook", "-d", "none"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: could not read none: No such file or directory (os error 2)
    ");
    assert_snapshot!(site.noetl(&["subscription", "register", "no/such"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: Subscription not found: no/such
    ");
    for call in [
        &["execute", "a", "--host", "127.0.0.1"][..],
        &["executions", "--server-url", "http://a", "--context", "b"],
        &["executions", "--json", "--output", "yaml"],
        &["register", "playbook"],
        &["token", "create", "--role", "admin", "--tenant", "acme"],
    ] {
        assert_eq!(site.raw(call).code, Some(2), "{call:?}");
    }
    let output = site.raw(&["executions", "--server-url", "nowhere"]);
    assert!(
        output.code == Some(2) && output.stderr.contains("--server-url: 'nowhere' is not"),
        "{output:?}"
    );
}

#[test]
fn the_doctor_checks_server_token_and_machine() {
    let site = Site::new();
    let output = site.raw(&["doctor", "--data", "data", "--json"]);
    let states: Vec<String> = output.json()["checks"]
        .as_array()
        .unwrap()
        .iter()
        // At which level steps are isolated is the machine's to say.
        .filter(|check| check["name"] != "steps")
        .map(|check| {
            format!("{} {}", check["name"].as_str().unwrap(), check["state"].as_str().unwrap())
        })
        .collect();
    assert_snapshot!(states.join("\n"), @r"
    server ok
    store ok
    bus ok
    token ok
    clock ok
    python ok
    data ok
    key ok
    ");
    assert_eq!(output.code, Some(0));
    let ill = site.home.end_of(
        site.command(&["doctor", "--server-url", &nobody()]).env("NOETL_PYTHON", "no-such-python"),
    );
    assert_eq!(ill.code, Some(3));
    for line in ["bad      server ", "skipped  token ", "bad      python  no-such-python"] {
        assert!(ill.stdout.contains(line), "{line}: {}", ill.stdout);
    }
}

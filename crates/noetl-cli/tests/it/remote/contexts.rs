use insta::assert_snapshot;

use crate::noetl::{CommandOutput, Home};

fn noetl(home: &Home, arguments: &[&str]) -> CommandOutput {
    home.end_of(home.command(arguments).env("HOME", home.path()))
}

#[test]
fn contexts_are_added_selected_updated_and_deleted() {
    let home = Home::new();
    assert_snapshot!(noetl(&home, &["context", "list"]).transcript(), @r"
    exit: 0
    --- stdout
    no contexts; add one with `noetl context add`
    --- stderr
    ");
    assert_snapshot!(noetl(&home, &["context", "current"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: no context is current
      help: choose one with `noetl context use NAME`
    ");
    let add = ["context", "add", "here", "--server-url", "http://127.0.0.1:1"];
    assert_snapshot!(noetl(&home, &add).transcript(), @r"
    exit: 0
    --- stdout
    --- stderr
    context 'here' (http://127.0.0.1:1) is kept and used from now on
    ");
    assert_snapshot!(noetl(&home, &add).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: there is a context 'here' already
      help: change it with `noetl context update here`
    ");
    let add =
        ["context", "add", "there", "--server-url", "https://noetl.example", "--token", "sesame"];
    assert_snapshot!(noetl(&home, &add).transcript(), @r"
    exit: 0
    --- stdout
    --- stderr
    context 'there' (https://noetl.example) is kept
    ");
    assert_snapshot!(noetl(&home, &["context", "list"]).transcript(), @r"
    exit: 0
    --- stdout
       NAME   SERVER                 TOKEN
    *  here   http://127.0.0.1:1     no
       there  https://noetl.example  yes
    --- stderr
    ");
    assert_snapshot!(noetl(&home, &["context", "use", "there"]).transcript(), @r"
    exit: 0
    --- stdout
    --- stderr
    context 'there' (https://noetl.example) is used from now on
    ");
    let current = noetl(&home, &["context", "current", "--json"]);
    assert_snapshot!(current.transcript(), @r#"
    exit: 0
    --- stdout
    {
      "name": "there",
      "current": true,
      "server_url": "https://noetl.example",
      "runtime": "auto",
      "has_token": true
    }
    --- stderr
    "#);
    assert_snapshot!(noetl(&home, &["context", "use", "nowhere"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: there is no context 'nowhere' in [home]/.noetl/config.yaml
      help: there is here, there
    ");
    let wrong = noetl(&home, &["context", "update", "here", "--server-url", "nowhere"]);
    assert_snapshot!(wrong.transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: 'nowhere' is not an address of a control plane
      help: write it as https://noetl.example
    ");
    assert_snapshot!(noetl(&home, &["context", "delete", "there"]).transcript(), @r"
    exit: 0
    --- stdout
    --- stderr
    context 'there' (https://noetl.example) is forgotten
    ");
    assert_eq!(noetl(&home, &["context", "current"]).code, Some(2));
    let file = std::fs::read_to_string(home.path().join(".noetl/config.yaml")).unwrap();
    assert_snapshot!(file, @r#"
    contexts:
      here:
        server_url: "http://127.0.0.1:1"
        runtime: auto
    "#);
}

#[test]
fn an_invalid_contexts_file_is_reported_by_path() {
    let home = Home::new();
    std::fs::create_dir(home.path().join(".noetl")).unwrap();
    home.write(".noetl/config.yaml", "contexts: [sesame]\n");
    let output = noetl(&home, &["executions"]);
    assert_snapshot!(output.transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: [home]/.noetl/config.yaml: contexts is not a map
      help: it holds `current_context: NAME` and `contexts: {NAME: {server_url: URL}}`
    ");
    let output = noetl(&home, &["executions", "--server-url", "http://127.0.0.1:1"]);
    assert_eq!(output.code, Some(3), "{output:?}");
}

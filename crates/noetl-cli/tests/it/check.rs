use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::noetl::{Home, one_step};

/// Seven mistakes and a warning.
const MISTAKES: &str = "\
apiVersion: noetl.io/v1
kind: Playbook
metadata: {name: wrong}
workflow:
  - step: start
    tool: {kind: pyhton, code: x}
    next:
      arcs:
        - step: midle
        - step: end
          when: \"{{ 1 + }}\"
  - step: ctx
    tool: {command: ls}
  - step: start
    tool: {kind: noop}
  - step: end
    tool: {kind: noop, result: \"{{ nope\"}
    nxt: {}
";

#[test]
fn every_mistake_of_a_file_is_shown_with_its_place() {
    let home = Home::with(MISTAKES);
    assert_snapshot!(home.noetl(["check", "test.yaml"]).transcript(), @r#"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:1:13: error[E001]: API version 'noetl.io/v1' is not supported
      1 | apiVersion: noetl.io/v1
        |             ^
      at apiVersion
      help: write 'apiVersion: noetl.io/v2'
    test.yaml:6:18: error[E011]: unknown tool kind 'pyhton'
      6 |     tool: {kind: pyhton, code: x}
        |                  ^
      at workflow[0].tool.kind
      help: did you mean 'python'? this version runs python, http, shell or noop
    test.yaml:9:17: error[E020]: there is no step named 'midle'
      9 |         - step: midle
        |                 ^
      at workflow[0].next.arcs[0].step
      help: add a step named 'midle', or lead the arc to one that exists
    test.yaml:11:25: error[E050]: the template does not compile: unexpected end of variable block
      11 |           when: "{{ 1 + }}"
         |                         ^
      at workflow[0].next.arcs[1].when
      help: check the braces, quotes and names of the template
    test.yaml:12:11: warning[W109]: step 'ctx' has the name of something templates always see
      12 |   - step: ctx
         |           ^
      at workflow[1].step
      help: rename the step, so that templates cannot mix them up
    test.yaml:13:11: error[E011]: the tool has no 'kind'
      13 |     tool: {command: ls}
         |           ^
      at workflow[1].tool
      help: add 'kind: python', or another kind
    test.yaml:14:11: error[E005]: step 'start' is defined on line 5 already
      14 |   - step: start
         |           ^
      at workflow[2].step
      help: rename one of lines 5 and 14
    test.yaml:17:36: error[E050]: the template does not compile: unexpected end of input, expected end of variable block
      17 |     tool: {kind: noop, result: "{{ nope"}
         |                                    ^
      at workflow[3].tool.result
      help: check the braces, quotes and names of the template
    test.yaml:18:5: warning[W102]: unknown key 'nxt', which has no effect
      18 |     nxt: {}
         |     ^
      at workflow[3].nxt
      help: did you mean 'next'?
    test.yaml: 7 errors, 2 warnings
    "#);
}

#[test]
fn json_output_has_the_same_findings_for_programs() {
    let home = Home::with(MISTAKES);
    let said = home.noetl(["check", "test.yaml", "--output", "json"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(2), ""));
    let reports = said.json();
    assert_eq!(reports[0]["file"], "test.yaml");
    let found = reports[0]["diagnostics"].as_array().unwrap();
    let places = found.iter().map(|found| {
        let text = |key: &str| found[key].as_str().unwrap().to_owned();
        format!("{} {} {}:{}", text("severity"), text("code"), found["line"], found["column"])
    });
    assert_snapshot!(places.collect::<Vec<_>>().join("\n"), @r"
    error E001 1:13
    error E011 6:18
    error E020 9:17
    error E050 11:25
    warning W109 12:11
    error E011 13:11
    error E005 14:11
    error E050 17:36
    warning W102 18:5
    ");
    let keys: Vec<&str> = found[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["severity", "code", "line", "column", "path", "message", "help"]);
}

#[test]
fn several_files_are_all_checked_and_one_mistake_decides() {
    let home = Home::with(MISTAKES);
    home.write("good.yaml", one_step("{kind: noop}"));
    let said = home.noetl(["check", "test.yaml", "good.yaml"]);
    let lines: Vec<&str> = said.stderr.lines().collect();
    assert_eq!(said.code, Some(2));
    assert_eq!(lines[lines.len() - 1], "good.yaml: ok");
    assert!(lines[lines.len() - 2].starts_with("test.yaml: "), "{lines:?}");

    let said = home.noetl(["check", "good.yaml", "test.yaml", "--output", "json"]);
    let files: Vec<Value> =
        said.json().as_array().unwrap().iter().map(|report| report["file"].clone()).collect();
    assert_eq!((said.code, files), (Some(2), vec![json!("good.yaml"), json!("test.yaml")]));
}

#[test]
fn warnings_alone_are_no_failure() {
    let home = Home::with(&one_step("{kind: noop}").replace("step: start", "step: ctx"));
    assert_snapshot!(home.noetl(["check", "test.yaml"]).transcript(), @r"
    exit: 0
    --- stdout
    --- stderr
    test.yaml:6:11: warning[W109]: step 'ctx' has the name of something templates always see
      6 |   - step: ctx
        |           ^
      at workflow[0].step
      help: rename the step, so that templates cannot mix them up
    test.yaml: 1 warning
    ");
    let said = home.noetl(["run", "test.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_playbook_from_stdin_is_called_stdin() {
    let said = Home::new().noetl_reading(["check", "-"], "workflow: []\n");
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.lines().all(|line| line.starts_with(' ') || line.starts_with("stdin:")));
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_those_after_it() {
    let home = Home::with(&one_step("{kind: noop}"));
    home.write("latin.yaml", b"name: caf\xe9\n");
    let files = ["check", "test.yaml", "missing.yaml", "latin.yaml", "test.yaml"];
    assert_snapshot!(home.noetl(files).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml: ok
    error: could not read missing.yaml: No such file or directory (os error 2)
      help: examples/hello.yaml is a playbook to begin with
    missing.yaml: 1 error
    error: latin.yaml is not UTF-8 text: byte 9 begins no character
    latin.yaml: 1 error
    test.yaml: ok
    ");
    let said = home.noetl(["check", "missing.yaml", "test.yaml", "--output", "json"]);
    let expected = json!([
        {
            "file": "missing.yaml",
            "error": "could not read missing.yaml: No such file or directory (os error 2)",
            "diagnostics": [],
        },
        {"file": "test.yaml", "diagnostics": []},
    ]);
    assert_eq!((said.code, said.json()), (Some(2), expected));
}

#[test]
fn a_run_of_a_wrong_playbook_says_what_check_says_and_starts_nothing() {
    let home = Home::with(MISTAKES);
    let checked = home.noetl(["check", "test.yaml"]);
    let run = home.noetl(["run", "test.yaml", "--db", "log.db"]);
    assert_eq!((run.code, run.stdout, run.stderr), (Some(2), String::new(), checked.stderr));
    assert!(!home.path().join("log.db").exists());
}

#[test]
fn subscriptions_are_checked_as_subscriptions() {
    let home = Home::new();
    home.write(
        "sub.yaml",
        "kind: Subscription\nmetadata: {name: a}\nspec: {source: natz, mode: pull}\n",
    );
    assert_snapshot!(home.noetl(["check", "sub.yaml"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    sub.yaml:3:7: error[E080]: the subscription has no 'dispatch'
      3 | spec: {source: natz, mode: pull}
        |       ^
      at spec
      help: say what a message starts: 'dispatch: {playbook: path/of/playbook}'
    sub.yaml:3:16: error[E081]: 'natz' is not possible here
      3 | spec: {source: natz, mode: pull}
        |                ^
      at spec.source
      help: did you mean 'nats'? write nats, pubsub, kafka or webhook
    sub.yaml: 2 errors
    ");
    let example = format!("{}/subscription.yaml", crate::noetl::EXAMPLES);
    assert_eq!(home.noetl(["check", &example]).code, Some(0));
}

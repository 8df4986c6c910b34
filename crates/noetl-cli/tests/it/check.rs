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
fn every_error_of_a_file_is_shown_with_its_position() {
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
      help: did you mean 'python'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
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
fn json_output_has_the_same_diagnostics() {
    let home = Home::with(MISTAKES);
    let output = home.noetl(["check", "test.yaml", "--output", "json"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(2), ""));
    let reports = output.json();
    assert_eq!(reports[0]["file"], "test.yaml");
    let diagnostics = reports[0]["diagnostics"].as_array().unwrap();
    let places = diagnostics.iter().map(|diagnostic| {
        let text = |key: &str| diagnostic[key].as_str().unwrap().to_owned();
        format!(
            "{} {} {}:{}",
            text("severity"),
            text("code"),
            diagnostic["line"],
            diagnostic["column"]
        )
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
    let keys: Vec<&str> = diagnostics[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["severity", "code", "line", "column", "path", "message", "help"]);
}

#[test]
fn one_invalid_file_of_several_fails_the_check() {
    let home = Home::with(MISTAKES);
    home.write("good.yaml", one_step("{kind: noop}"));
    let output = home.noetl(["check", "test.yaml", "good.yaml"]);
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(output.code, Some(2));
    assert_eq!(lines[lines.len() - 1], "good.yaml: ok");
    assert!(lines[lines.len() - 2].starts_with("test.yaml: "), "{lines:?}");

    let output = home.noetl(["check", "good.yaml", "test.yaml", "--output", "json"]);
    let files: Vec<Value> =
        output.json().as_array().unwrap().iter().map(|report| report["file"].clone()).collect();
    assert_eq!((output.code, files), (Some(2), vec![json!("good.yaml"), json!("test.yaml")]));
}

#[test]
fn warnings_alone_do_not_fail_the_check() {
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
    let output = home.noetl(["run", "test.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn a_playbook_from_stdin_is_reported_as_stdin() {
    let output = Home::new().noetl_reading(["check", "-"], "workflow: []\n");
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.lines().all(|line| line.starts_with(' ') || line.starts_with("stdin:")));
}

#[test]
fn files_after_an_unreadable_file_are_checked() {
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
    let output = home.noetl(["check", "missing.yaml", "test.yaml", "--output", "json"]);
    let expected = json!([
        {
            "file": "missing.yaml",
            "error": "could not read missing.yaml: No such file or directory (os error 2)",
            "diagnostics": [],
        },
        {"file": "test.yaml", "diagnostics": []},
    ]);
    assert_eq!((output.code, output.json()), (Some(2), expected));
}

#[test]
fn running_an_invalid_playbook_prints_the_errors_of_check_and_starts_nothing() {
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
      help: did you mean 'nats'? write nats, pubsub, kafka, webhook, postgres, redis or mqtt
    sub.yaml: 2 errors
    ");
    for source in ["", "-postgres", "-redis", "-mqtt", "-pubsub"] {
        let name = format!("subscription{source}");
        let example = format!("{}/{name}.yaml", crate::noetl::EXAMPLES);
        assert_eq!(home.noetl(["check", &example]).code, Some(0), "{name}");
    }
}

#[test]
fn schedules_are_checked_as_schedules() {
    let home = Home::new();
    home.write(
        "sched.yaml",
        "kind: Schedule\nmetadata: {name: a}\nspec: {playbook: a/b, cron: '0 2 * *', timezone: Europe/Berlin}\n",
    );
    assert_snapshot!(home.noetl(["check", "sched.yaml"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    sched.yaml:3:29: error[E081]: a cron expression has 5 fields, or 6 with seconds; this has 4
      3 | spec: {playbook: a/b, cron: '0 2 * *', timezone: Europe/Berlin}
        |                             ^
      at spec.cron
      help: write minute, hour, day of the month, month and day of the week, as '0 2 * * *'
    sched.yaml: 1 error
    ");
    let example = format!("{}/schedule.yaml", crate::noetl::EXAMPLES);
    assert_eq!(home.noetl(["check", &example]).code, Some(0));
}

/// Older shapes, some of which can be rewritten.
const OLDER: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: older}
workflow:
  - step: start   # first
    args: {a: 1}
    when: ctx.go
    tool: {kind: noop}
    next: [end]   # then
  - step: end
    tool: {kind: noop}
";

#[test]
fn a_fix_rewrites_older_syntax_in_the_file() {
    let home = Home::with(OLDER);
    assert_snapshot!(home.noetl(["check", "test.yaml", "--fix"]).transcript(), @r"
    exit: 0
    --- stdout
    --- stderr
    test.yaml:6:5: renamed 'args' to 'input'
    test.yaml:9:11: wrote 'next' with 'arcs' in mode inclusive
    test.yaml:7:5: warning[W101]: a condition on the step itself is older; when it does not hold, the step is passed over
      7 |     when: ctx.go
        |     ^
      at workflow[0].when
      help: put the condition on the arcs that lead to this step
    test.yaml: 2 rewritten, 1 warning
    ");
    let written = std::fs::read_to_string(home.path().join("test.yaml")).unwrap();
    assert_snapshot!(written, @r"
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: older}
    workflow:
      - step: start   # first
        input: {a: 1}
        when: ctx.go
        tool: {kind: noop}
        next: {spec: {mode: inclusive}, arcs: [{step: end}]}   # then
      - step: end
        tool: {kind: noop}
    ");
    let names: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let again = home.noetl(["check", "test.yaml", "--fix", "--output", "json"]);
    assert_eq!(again.json()[0]["changes"], json!([]));
    assert_eq!(std::fs::read_to_string(home.path().join("test.yaml")).unwrap(), written);
}

#[test]
fn a_dry_run_prints_the_diff_and_writes_nothing() {
    let home = Home::with(OLDER);
    let output = home.noetl(["check", "--fix", "--dry-run", "test.yaml"]);
    assert_eq!(std::fs::read_to_string(home.path().join("test.yaml")).unwrap(), OLDER);
    assert_snapshot!(output.stdout, @r"
    --- test.yaml
    +++ test.yaml
    @@ -3,9 +3,9 @@
     metadata: {name: older}
     workflow:
       - step: start   # first
    -    args: {a: 1}
    +    input: {a: 1}
         when: ctx.go
         tool: {kind: noop}
    -    next: [end]   # then
    +    next: {spec: {mode: inclusive}, arcs: [{step: end}]}   # then
       - step: end
         tool: {kind: noop}
    ");
    assert!(output.stderr.ends_with("test.yaml: 2 to rewrite, 1 warning\n"), "{}", output.stderr);
    let without = home.noetl(["check", "--dry-run", "test.yaml"]);
    assert_eq!((without.code, without.stdout.as_str()), (Some(2), ""));
}

#[test]
fn a_fix_of_stdin_is_written_to_stdout() {
    let output = Home::new().noetl_reading(["check", "--fix", "-"], OLDER);
    assert_eq!(output.code, Some(0));
    assert_eq!(
        output.stdout,
        OLDER
            .replace("args", "input")
            .replace("[end]", "{spec: {mode: inclusive}, arcs: [{step: end}]}")
    );
}

#[test]
fn a_fix_does_not_change_invalid_or_read_only_files() {
    let home = Home::with(MISTAKES);
    let output = home.noetl(["check", "--fix", "test.yaml"]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.stderr.ends_with("test.yaml: 0 rewritten, 7 errors, 2 warnings\n"),
        "{}",
        output.stderr
    );
    assert_eq!(std::fs::read_to_string(home.path().join("test.yaml")).unwrap(), MISTAKES);

    let path = home.write("kept.yaml", OLDER);
    let mut permissions = std::fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    let output = home.noetl(["check", "--fix", "kept.yaml"]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.stderr.contains("error: could not write kept.yaml: it is read-only"),
        "{}",
        output.stderr
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), OLDER);
}

#[test]
fn a_fix_of_a_symlink_rewrites_its_target() {
    let home = Home::with(OLDER);
    std::os::unix::fs::symlink("test.yaml", home.path().join("link.yaml")).unwrap();
    assert_eq!(home.noetl(["check", "--fix", "link.yaml"]).code, Some(0));
    assert!(std::fs::symlink_metadata(home.path().join("link.yaml")).unwrap().is_symlink());
    assert!(
        std::fs::read_to_string(home.path().join("test.yaml")).unwrap().contains("input: {a: 1}")
    );
}

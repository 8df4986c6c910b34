use insta::assert_snapshot;
use serde_json::json;

use crate::noetl::{Home, one_step, playbook};

/// Gives its workload back.
fn echo() -> String {
    playbook(
        "{who: world, limits: {max: 1, min: 0}}",
        "  - {step: start, tool: {kind: noop, result: '{{ workload }}'}}\n",
    )
}

#[test]
fn a_run_in_a_pipe_prints_plain_lines_and_only_the_result_on_stdout() {
    let home = Home::with(&playbook(
        "{}",
        "  - {step: start, tool: {kind: noop, result: {n: 1}}, next: {arcs: [{step: end}]}}\n  \
           - {step: end, tool: {kind: noop, result: {sum: '{{ start.n + 1 }}'}}}\n",
    ));
    assert_snapshot!(home.noetl(["run", "test.yaml"]).transcript(), @r#"
    exit: 0
    --- stdout
    {
      "sum": 2
    }
    --- stderr
      done    start  [time]
      done    end  [time]
    tests/test completed in [time]
    "#);
}

#[test]
fn text_results_are_printed_verbatim_and_null_prints_nothing() {
    let text = Home::with(&one_step("{kind: noop, result: 'two\n\n      lines'}"));
    assert_snapshot!(text.noetl(["run", "test.yaml"]).stdout, @r"
    two
    lines
    ");
    let null = Home::with(&one_step("{kind: noop, result: null}"));
    assert_eq!(null.noetl(["run", "test.yaml"]).stdout, "");
}

#[test]
fn json_output_is_one_document_with_the_outcome() {
    let home = Home::with(&one_step("{kind: noop, result: {n: 1}}"));
    let output = home.noetl(["run", "test.yaml", "--output", "json"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), "  done    start  [time]\n"));
    let mut document = output.json();
    let fields = document.as_object_mut().unwrap();
    let id = fields.insert("execution_id".into(), json!("[id]")).unwrap();
    assert!(id.as_str().unwrap().parse::<u64>().is_ok(), "{id}");
    assert!(fields.insert("duration_ms".into(), json!("[time]")).unwrap().is_u64());
    assert_snapshot!(format!("{document:#}"), @r#"
    {
      "execution_id": "[id]",
      "status": "COMPLETED",
      "result": {
        "n": 1
      },
      "error": null,
      "duration_ms": "[time]",
      "events": 8
    }
    "#);
}

#[test]
fn json_output_of_a_failed_run_has_the_error() {
    let home = Home::with(&one_step("{kind: shell, command: 'echo no >&2; exit 3'}"));
    let output = home.noetl(["run", "test.yaml", "--output", "json"]);
    assert_eq!(output.code, Some(1));
    let document = output.json();
    assert_eq!(document["status"], "FAILED");
    assert_eq!(document["result"], json!(null));
    assert_eq!(document["error"], "exit_code: the command ended with exit code 3: no");
}

#[test]
fn a_playbook_is_read_from_stdin() {
    let output = Home::new().noetl_reading(["run", "-", "--set", "who=Ada"], &echo());
    assert_eq!((output.code, &output.json()["who"]), (Some(0), &json!("Ada")));
}

#[test]
fn files_that_are_not_playbooks_are_rejected() {
    let home = Home::new();
    home.write("latin1.yaml", b"name: caf\xe9\n");
    let stderr_of = |file| {
        let output = home.noetl(["run", file]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
        output.stderr
    };
    assert_snapshot!(["missing.yaml", ".", "latin1.yaml"].map(stderr_of).concat(), @r"
    error: could not read missing.yaml: No such file or directory (os error 2)
      help: examples/hello.yaml is a playbook to begin with
    error: could not read .: Is a directory (os error 21)
      help: examples/hello.yaml is a playbook to begin with
    error: latin1.yaml is not UTF-8 text: byte 9 begins no character
    ");
}

#[test]
fn an_invalid_variable_is_reported_by_name() {
    let home = Home::with(&echo());
    let stderr_with = |name: &str, value: &str| {
        let output = home.end_of(home.command(["run", "test.yaml"]).env(name, value));
        assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""));
        output.stderr
    };
    assert_snapshot!(
        stderr_with("NOETL_SQLITE_SYNCHRONOUS", "fast") + &stderr_with("NOETL_SERVER_MACHINE_ID", "x"),
        @r"
    error: NOETL_SQLITE_SYNCHRONOUS is full or normal, not 'fast'
    error: NOETL_SERVER_MACHINE_ID is a number from 0 to 1023, not 'x'
    "
    );
}

#[test]
fn templates_see_only_the_listed_environment_variables() {
    let home = Home::with(&one_step(
        "{kind: noop, result: {a: '{{ env.A }}', b: \"{{ env.B | default('hidden') }}\"}}",
    ));
    let mut command = home.command(["run", "test.yaml"]);
    let output =
        home.end_of(command.envs([("A", "1"), ("B", "2"), ("NOETL_TEMPLATE_ENV", "A, C")]));
    assert_eq!(output.json(), json!({"a": "1", "b": "hidden"}), "{output:?}");
}

#[test]
fn a_database_stores_every_run() {
    let home = Home::with(&echo());
    let events = |output: &crate::noetl::CommandOutput| output.json()["execution_id"].clone();
    let first = home.noetl(["run", "test.yaml", "--db", "new/log.db", "--output", "json"]);
    let second = home.noetl(["run", "test.yaml", "--db", "new/log.db", "--output", "json"]);
    assert_eq!((first.code, second.code), (Some(0), Some(0)));
    assert_ne!(events(&first), events(&second));
    assert_eq!(std::fs::read_to_string(home.path().join("new/log.db.lock")).unwrap(), "");
}

#[test]
fn python_code_reads_results_ctx_and_workload_in_context() {
    let steps = "  - {step: start, tool: {kind: python, code: \"result = 'x' * 500000\"}, \
                 set: {ctx.n: 3}, next: {arcs: [{step: end}]}}\n  \
                 - {step: end, tool: {kind: python, code: \"result = [len(context['start']), \
                 context['ctx']['n'], context.get('workload')['who'], context.get('nobody')]\"}}\n";
    let home = Home::with(&playbook("{who: Ada}", steps));
    let output = home.noetl(["run", "test.yaml"]);
    assert_eq!(output.json(), json!([500_000, 3, "Ada", null]), "{output:?}");
}

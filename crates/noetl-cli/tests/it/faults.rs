//! Single faults: each causes a clear message and the documented exit code, and leaves the database
//! usable.

use std::net::TcpListener;

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::noetl::{CommandOutput, Home, one_step, playbook};

const GOOD: &str = "{kind: noop, result: well}";

/// Runs a playbook on a database, then a good one on the same database.
fn fault(playbook: &str) -> CommandOutput {
    let home = Home::with(playbook);
    let output = home.noetl(["run", "test.yaml", "--db", "log.db"]);
    works(&home, "log.db");
    output
}

fn works(home: &Home, database: &str) {
    home.write("good.yaml", one_step(GOOD));
    let output = home.noetl(["run", "good.yaml", "--db", database]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "well\n"), "{output:?}");
}

fn steps(steps: &str) -> String {
    playbook("{}", steps)
}

#[test]
fn an_arc_to_an_unknown_step() {
    let text = "  - {step: start, tool: {kind: noop}, next: {arcs: [{step: edn}]}}\n  \
                - {step: end, tool: {kind: noop}}\n";
    assert_snapshot!(fault(&steps(text)).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:6:60: error[E020]: there is no step named 'edn'
      6 | : start, tool: {kind: noop}, next: {arcs: [{step: edn}]}}
        |                                                   ^
      at workflow[0].next.arcs[0].step
      help: did you mean 'end'?
    test.yaml: 1 error
    ");
}

#[test]
fn two_steps_with_the_same_name() {
    let text = "  - {step: start, tool: {kind: noop}}\n  - {step: start, tool: {kind: noop}}\n";
    assert_snapshot!(fault(&steps(text)).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:7:12: error[E005]: step 'start' is defined on line 6 already
      7 |   - {step: start, tool: {kind: noop}}
        |            ^
      at workflow[1].step
      help: rename one of lines 6 and 7
    test.yaml: 1 error
    ");
}

#[test]
fn a_tool_that_does_not_exist() {
    assert_snapshot!(fault(&one_step("{kind: shel, command: ls}")).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:7:18: error[E011]: unknown tool kind 'shel'
      7 |     tool: {kind: shel, command: ls}
        |                  ^
      at workflow[0].tool.kind
      help: did you mean 'shell'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    test.yaml: 1 error
    ");
}

#[test]
fn a_tool_without_a_kind() {
    assert_snapshot!(fault(&one_step("{command: ls}")).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:7:11: error[E011]: the tool has no 'kind'
      7 |     tool: {command: ls}
        |           ^
      at workflow[0].tool
      help: add 'kind: python', or another kind
    test.yaml: 1 error
    ");
}

#[test]
fn an_api_version_of_another_language() {
    let text = one_step(GOOD).replace("noetl.io/v2", "noetl.io/v9");
    assert_snapshot!(fault(&text).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:1:13: error[E001]: API version 'noetl.io/v9' is not supported
      1 | apiVersion: noetl.io/v9
        |             ^
      at apiVersion
      help: write 'apiVersion: noetl.io/v2'
    test.yaml: 1 error
    ");
}

#[test]
fn a_template_that_does_not_parse() {
    assert_snapshot!(fault(&one_step("{kind: noop, result: '{{ 1 + }}'}")).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:7:40: error[E050]: the template does not compile: unexpected end of variable block
      7 |     tool: {kind: noop, result: '{{ 1 + }}'}
        |                                        ^
      at workflow[0].tool.result
      help: check the braces, quotes and names of the template
    test.yaml: 1 error
    ");
}

#[test]
fn a_document_that_is_not_yaml() {
    assert_snapshot!(fault("workflow: [").transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    test.yaml:2:1: error[E000]: this is not valid YAML: while parsing a node, did not find expected node content
      help: check indentation, quotes and brackets on this line and the one before it
    test.yaml: 1 error
    ");
}

#[test]
fn a_template_that_divides_by_zero() {
    let text = playbook(
        "{n: 0}",
        "  - {step: start, tool: {kind: noop, result: '{{ 1 / workload.n }}'}}\n",
    );
    assert_snapshot!(fault(&text).transcript(), @r"
    exit: 1
    --- stdout
    --- stderr
      failed  start  [time]  template_error: division by zero in `1 / workload.n` in `{{ 1 / workload.n }}` at tool.result
    tests/test failed in [time]: template_error: division by zero in `1 / workload.n` in `{{ 1 / workload.n }}` at tool.result
    ");
}

#[test]
fn a_missing_python_interpreter_is_reported() {
    let home = Home::with(&one_step("{kind: python, code: 'result = 1'}"));
    let mut command = home.command(["run", "test.yaml", "--db", "log.db"]);
    let output = home.end_of(command.env("NOETL_PYTHON", "/nonexistent"));
    assert_snapshot!(output.transcript(), @r"
    exit: 1
    --- stdout
    --- stderr
      failed  start  [time]  tool_missing: /nonexistent was not found; install it or set NOETL_PYTHON
    tests/test failed in [time]: tool_missing: /nonexistent was not found; install it or set NOETL_PYTHON
    ");
    works(&home, "log.db");
}

#[test]
fn a_python_step_that_never_ends() {
    let text = one_step("{kind: python, code: 'while True: pass', spec: {timeout: 1}}");
    assert_snapshot!(fault(&text).transcript(), @r"
    exit: 1
    --- stdout
    --- stderr
      failed  start  [time]  timeout: step 'start' took longer than its limit of 1s
    tests/test failed in [time]: timeout: step 'start' took longer than its limit of 1s
    ");
}

/// Runs a step that prints a gigabyte between two steps that read the program's peak memory.
/// Returns the output and the increase of the peak in bytes, because the initial memory depends on
/// the build.
fn gigabyte(tool: &str) -> (CommandOutput, u64) {
    let look = "{kind: shell, command: 'grep VmHWM: /proc/$PPID/status'}";
    let text = format!(
        "  - {{step: start, tool: {look}, next: {{arcs: [{{step: print}}]}}}}
  - {{step: print, tool: {tool}, next: {{arcs: [{{step: peak, on: error}}, {{step: peak}}]}}}}
  - {{step: peak, tool: {look}, next: {{arcs: [{{step: both}}]}}}}
  - {{step: both, tool: {{kind: noop, result: [\"{{{{ start.stdout }}}}\", \"{{{{ peak.stdout }}}}\"]}}}}
"
    );
    let output = fault(&steps(&text));
    let kib = |at: usize| -> u64 {
        let status = output.json()[at].as_str().unwrap().to_owned();
        status.trim().trim_start_matches("VmHWM:").trim_end_matches("kB").trim().parse().unwrap()
    };
    let rose = (kib(1) - kib(0)) * 1024;
    (output, rose)
}

const MIB: u64 = 1024 * 1024;

#[test]
fn a_shell_step_that_prints_a_gigabyte_fails_in_little_memory() {
    let tool = "{kind: shell, command: head -c 1000000000 /dev/zero}";
    assert_snapshot!(fault(&one_step(tool)).transcript(), @r"
    exit: 1
    --- stdout
    --- stderr
      failed  start  [time]  output_limit: the command was killed because its stdout passed 1048576 bytes; redirect large output to a file
    tests/test failed in [time]: output_limit: the command was killed because its stdout passed 1048576 bytes; redirect large output to a file
    ");
    let (output, rose) = gigabyte(tool);
    assert!(output.stderr.contains("(handled)"), "{output:?}");
    assert!(rose < 32 * MIB, "{rose} bytes");
}

#[test]
fn a_python_step_that_prints_a_gigabyte_completes_in_little_memory() {
    let code = "for _ in range(1000): print('x' * 999999)\\nresult = 'printed'";
    let (output, rose) = gigabyte(&format!("{{kind: python, code: \"{code}\"}}"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("  done    print  [time]\n"), "{output:?}");
    assert!(rose < 32 * MIB, "{rose} bytes");
}

#[test]
fn a_text_file_as_the_database() {
    let home = Home::with(&one_step(GOOD));
    home.write("log.db", "my notes\n");
    assert_snapshot!(home.noetl(["run", "test.yaml", "--db", "log.db"]).transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: log.db is not a SQLite file
      help: name a file that noetl made, or one that does not exist yet
    ");
    assert_eq!(std::fs::read_to_string(home.path().join("log.db")).unwrap(), "my notes\n");
}

#[test]
fn a_database_of_another_program() {
    let home = Home::with(&one_step(GOOD));
    let script = "import sqlite3; c = sqlite3.connect('log.db'); c.execute('create table t(a)')";
    assert!(home.other("python3").args(["-c", script]).status().unwrap().success());
    let before = std::fs::read(home.path().join("log.db")).unwrap();
    assert_snapshot!(home.noetl(["run", "test.yaml", "--db", "log.db"]).transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: log.db is a SQLite file of another program
      help: name a file that noetl made, or one that does not exist yet
    ");
    assert_eq!(std::fs::read(home.path().join("log.db")).unwrap(), before);
}

#[test]
fn a_directory_as_the_database() {
    let home = Home::with(&one_step(GOOD));
    std::fs::create_dir(home.path().join("log.db")).unwrap();
    assert_snapshot!(home.noetl(["run", "test.yaml", "--db", "log.db"]).transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: could not open log.db: is a directory
    ");
}

#[test]
fn a_file_as_the_database_directory() {
    let home = Home::with(&one_step(GOOD));
    assert_snapshot!(home.noetl(["run", "test.yaml", "--db", "test.yaml/log.db"]).transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: could not make the directory test.yaml: File exists (os error 17)
    ");
}

#[test]
fn a_database_that_another_process_has_open() {
    let home = Home::new();
    let gate = home.gate();
    let knock = gate.knock();
    home.write(
        "test.yaml",
        one_step(&format!("{{kind: shell, command: \"{knock}; exec sleep 600\"}}")),
    );
    home.write("good.yaml", one_step(GOOD));
    let first = home.start(["run", "test.yaml", "--db", "log.db"]);
    gate.wait();
    let second = home.noetl(["run", "good.yaml", "--db", "log.db"]);
    let transcript = second.transcript().replace(&first.id().to_string(), "[pid]");
    assert_snapshot!(transcript, @r"
    exit: 3
    --- stdout
    --- stderr
    error: log.db is in use by process [pid]
      help: stop the other process, or choose another file
    ");
    first.send(Signal::INT);
    assert_eq!(first.end(&home).code, Some(130));
    works(&home, "log.db");
}

#[test]
fn a_port_already_in_use() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let output = home.noetl(["dev", "--port", &port]);
    assert_snapshot!(output.transcript().replace(&port, "[port]"), @r"
    exit: 3
    --- stdout
    --- stderr
    error: could not listen on 127.0.0.1:[port]: Address already in use (os error 98)
      help: stop what listens there, or choose another with --port
    ");
    assert!(!home.path().join("noetl-data").exists());
}

#[test]
fn a_host_that_is_not_loopback() {
    assert_snapshot!(Home::new().noetl(["dev", "--host", "0.0.0.0"]).transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: 0.0.0.0 is not a loopback address
      help: callers are not asked for a token, so only this machine may call: use 127.0.0.1 or ::1, or set NOETL_AUTH to token or oidc
    ");
}

#[test]
fn a_host_that_is_not_an_address() {
    assert_snapshot!(Home::new().noetl(["dev", "--host", "everywhere"]).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: invalid value 'everywhere' for '--host <HOST>': expected an IP address

    For more information, try '--help'.
    ");
}

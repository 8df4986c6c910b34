//! Tests of language features that this version doesn't run.

use insta::assert_snapshot;

use super::report_steps;

#[test]
fn missing_tool_kinds_are_distinguished_from_unknown_ones() {
    assert_snapshot!(report_steps("
  - step: a
    tool: {kind: snowflake, query: select 1}
  - step: b
    tool: {kind: wasm, module: x}
  - step: c
    tool: {kind: postgre}
"), @r"
    error[E090] at 7:18, workflow[0].tool.kind: tool kind 'snowflake' is not available in this version
      help: call its service with 'http', or its driver from 'python'
    error[E090] at 9:18, workflow[1].tool.kind: tool kind 'wasm' is not available in this version
      help: use 'python' or 'shell'
    error[E011] at 11:18, workflow[2].tool.kind: unknown tool kind 'postgre'
      help: did you mean 'postgres'? this version runs python, http, shell, noop, postgres, sqlite, duckdb, artifact, transfer, nats, secrets, workbook, playbook, wait or approval
    ");
}

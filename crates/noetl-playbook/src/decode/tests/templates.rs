//! Templates that do not compile, at the character where they go wrong.

use insta::assert_snapshot;

use super::{report, report_steps};

#[test]
fn an_invalid_template_is_reported_at_its_position() {
    assert_snapshot!(report_steps("
  - step: start
    tool:
      kind: python
      input:
        plain: x {{ 1 + }}
        single: 'it''s {{ 1 + }}'
        double: \"\\\"quoted\\\" {{ 1 + }}\"
        list: [a, 'é {{ 1 + }}']
      code: |
        first = 1
        second = {{ 1 + }}
    set: {ctx.x: '{{ open'}
    next:
      arcs:
        - {step: start, when: 'a ==='}
        - {step: start, when: \"{{ a == }}\"}
        - step: start
          when: >-
            {{ a
            and }}
"), @r#"
    error[E050] at 10:25, workflow[0].tool.input.plain: the template does not compile: unexpected end of variable block
      help: check the braces, quotes and names of the template
    error[E050] at 11:31, workflow[0].tool.input.single: the template does not compile: unexpected end of variable block
      help: check the braces, quotes and names of the template
    error[E050] at 12:36, workflow[0].tool.input.double: the template does not compile: unexpected end of variable block
      help: check the braces, quotes and names of the template
    error[E050] at 13:29, workflow[0].tool.input.list[1]: the template does not compile: unexpected end of variable block
      help: check the braces, quotes and names of the template
    error[E050] at 16:25, workflow[0].tool.code: the template does not compile: unexpected end of variable block
      help: check the braces, quotes and names of the template
    error[E050] at 17:22, workflow[0].set["ctx.x"]: the template does not compile: unexpected end of input, expected end of variable block
      help: check the braces, quotes and names of the template
    error[E050] at 20:36, workflow[0].next.arcs[0].when: the template does not compile: unexpected `=`
      help: check the braces, quotes and names of the template
    error[E050] at 21:40, workflow[0].next.arcs[1].when: the template does not compile: unexpected end of variable block
      help: check the braces, quotes and names of the template
    error[E050] at 25:17, workflow[0].next.arcs[2].when: the template does not compile: unexpected end of variable block
      help: check the braces, quotes and names of the template
    "#);
}

#[test]
fn an_invalid_template_in_the_workload_is_reported() {
    assert_snapshot!(report("\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: a}
workload:
  deep: [{er: '{% if x %}'}]
vars: {v: '{{ | }}'}
workflow:
  - {step: a, tool: {kind: noop}}
"), @r"
    error[E050] at 5:24, workload.deep[0].er: the template does not compile: unexpected end of input, expected end of block
      help: check the braces, quotes and names of the template
    warning[W101] at 6:1, vars: 'vars' is an older section; its names begin as ctx variables
      help: put constants into 'workload', and assign with 'set'
    error[E050] at 6:15, vars.v: the template does not compile: unexpected `|`
      help: check the braces, quotes and names of the template
    ");
}

#[test]
fn raw_code_is_not_compiled() {
    assert_snapshot!(report_steps("
  - step: start
    tool: {kind: python, raw: true, code: 'f\"{{ {1 + }}\"'}
"), @"");
}

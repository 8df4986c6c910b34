//! Texts before and after.

mod properties;

use insta::assert_snapshot;

use super::fix;

const HEAD: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: test}\nworkflow:\n";

fn steps(steps: &str) -> String {
    let text = format!("{HEAD}{steps}");
    let fixed = fix(&text);
    let again = fix(&fixed.text);
    assert_eq!((again.text == fixed.text, again.changes), (true, Vec::new()), "{}", fixed.text);
    let body = fixed.text.strip_prefix(HEAD).unwrap_or(&fixed.text);
    let mut shown = body.to_owned();
    for change in &fixed.changes {
        shown.push_str(&format!("{}:{} {}\n", change.line, change.column, change.what));
    }
    for left in &fixed.left {
        shown.push_str(&format!("left {left}\n"));
    }
    shown
}

#[test]
fn keys_are_renamed() {
    assert_snapshot!(steps("
  - step: start   # first
    args: {a: 1}  # old
    vars:
      v: '{{ result.x }}'   # kept
      ctx.w: 2
    tool: {kind: http, url: x, \"args\": {b: 2}, credential: api, set_iter: {n: 1}}
    next:
      arcs:
        - step: start
          cond: ctx.x   # comment
          args: {k: 1, 'q': 2}
        - {step: b, condition: yes, set: {plain: 1}}
  - step: b
    tool: {kind: workbook, task: t}
    spec: {timeout: 5}
workbook:
  - name: t
    tool: {kind: playbooks, path: x, with: {a: 1}}
"), @r#"
      - step: start   # first
        input: {a: 1}  # old
        set:
          ctx.v: '{{ result.x }}'   # kept
          ctx.w: 2
        tool: {kind: http, url: x, "input": {b: 2}, auth: api, set: {iter.n: 1}}
        next:
          arcs:
            - step: start
              when: ctx.x   # comment
              set: {ctx.k: 1, 'ctx.q': 2}
            - {step: b, when: true, set: {ctx.plain: 1}}
      - step: b
        tool: {kind: workbook, name: t}
        spec: {timeout: 5}
    workbook:
      - name: t
        tool: {kind: playbook, path: x, input: {a: 1}}
    7:5 renamed 'args' to 'input'
    8:5 renamed 'vars' to 'set', with targets in ctx
    11:32 renamed 'args' to 'input'
    11:48 renamed 'credential' to 'auth'
    11:65 renamed 'set_iter' to 'set', with targets in iter
    15:11 renamed 'cond' to 'when'
    16:11 renamed 'args' to 'set', with targets in ctx
    17:21 renamed 'condition' to 'when'
    17:32 wrote true
    17:43 wrote 'ctx.plain'
    19:28 renamed 'task' to 'name'
    23:18 wrote 'kind: playbook'
    23:38 renamed 'with' to 'input'
    "#);
}

#[test]
fn next_becomes_a_router() {
    assert_snapshot!(steps("
  - step: start
    tool: {kind: noop}
    next: a   # where to
  - step: a
    next: [b, {step: c, when: x, args: {k: 1}}]
  - step: b
    next:
      - c
      # a comment
      - d
  - step: c
    spec: {next_mode: inclusive, timeout: 5}
    next:
    - step: d
      cond: ctx.x
    - step: e
      set:
        plain: |
          text
            more
  - step: d
    next:
      step: e   # only
      when: ctx.y
  - step: e
    next: {step: f, when: ctx.z}
  - step: f
    next: {mode: inclusive, on_no_match: fail, arcs: [{step: g, when: ctx.a}]}
  - step: g
    spec:
      next_mode: exclusive
    next: [{when: a, then: h}, {else: h}]
  - step: h
    spec:
      next_mode: exclusive
    next: [g]
    desc: last
"), @r"
      - step: start
        tool: {kind: noop}
        next: {arcs: [{step: a}]}   # where to
      - step: a
        next: {spec: {mode: exclusive}, arcs: [{step: b}, {step: c, when: x, set: {ctx.k: 1}}]}
      - step: b
        next:
          spec: {mode: inclusive}
          arcs:
          - step: c
          # a comment
          - step: d
      - step: c
        spec: {timeout: 5}
        next:
          spec: {mode: inclusive}
          arcs:
          - step: d
            when: ctx.x
          - step: e
            set:
              ctx.plain: |
                text
                  more
      - step: d
        next:
          arcs:
          - step: e   # only
            when: ctx.y
      - step: e
        next: {arcs: [{step: f, when: ctx.z}]}
      - step: f
        next: {spec: {mode: inclusive, on_no_match: fail}, arcs: [{step: g, when: ctx.a}]}
      - step: g
        next: {spec: {mode: exclusive}, arcs: [{when: a, step: h}, {step: h}]}
      - step: h
        next: {spec: {mode: exclusive}, arcs: [{step: g}]}
        desc: last
    8:11 wrote 'next' with 'arcs'
    10:11 wrote 'next' with 'arcs' in mode exclusive
    10:34 renamed 'args' to 'set', with targets in ctx
    13:7 wrote 'next' with 'arcs' in mode inclusive
    19:5 wrote 'next' with 'arcs' in mode inclusive
    20:7 renamed 'cond' to 'when'
    23:9 wrote 'ctx.plain'
    28:7 wrote 'next' with 'arcs'
    31:11 wrote 'next' with 'arcs'
    33:12 put the router's settings under 'spec'
    37:22 wrote the branch as an arc
    37:33 wrote the branch as an arc
    41:11 wrote 'next' with 'arcs' in mode exclusive
    42:11 wrote 'next' with 'arcs' in mode exclusive
    ");
}

#[test]
fn labels_become_names() {
    assert_snapshot!(steps("
  - step: start
    tool:
      - one:   # first
          kind: python
          # inside
          code: |
            a = 1
              b
          args:
            x: 1
      - two: {kind: noop}
      - {three: {kind: noop, args: {a: 1}}}
  - step: single
    tool: {only: {kind: noop, set_ctx: {a: 1}}}
"), @r"
      - step: start
        tool:
          - name: one   # first
            kind: python
            # inside
            code: |
              a = 1
                b
            input:
              x: 1
          - {name: two, kind: noop}
          - {name: three, kind: noop, input: {a: 1}}
      - step: single
        tool: {name: only, kind: noop, set: {ctx.a: 1}}
    8:9 put the label 'one' beside 'kind'
    14:11 renamed 'args' to 'input'
    16:9 put the label 'two' beside 'kind'
    17:10 put the label 'three' beside 'kind'
    17:30 renamed 'args' to 'input'
    19:12 put the label 'only' beside 'kind'
    19:31 renamed 'set_ctx' to 'set', with targets in ctx
    ");
}

#[test]
fn rules_and_loops_are_rewritten() {
    assert_snapshot!(steps("
  - step: start
    loop: {items: [1], element: x, mode: parallel, concurrency: 3, collect: y}
    tool:
      kind: noop
      spec:
        policy:
          rules:
            - expr: ctx.x
              then: {do: retry, set_ctx: {a: 1}}
            - when: yes
              then:
                do: continue
                set_iter:
                  b: 2
            - else: {do: break}
      set_ctx: {a: 1}
      set_iter: {'b': 2}
      set: {ctx.c: 3, d: 4}
  - step: c
    set: {ctx: {x: 1}, y: 2}
    tool:
      kind: noop
      spec:
        policy:
          rules:
            - else:   # always
              then:
                do: fail
  - step: b
    loop:
      collection: [1]
      element: item
      enumerate: true
      mode: sequential   # one by one
    tool: {kind: noop, eval: [{expr: a, do: fail}]}
"), @r"
      - step: start
        loop: {in: [1], iterator: x, spec: {mode: parallel, max_in_flight: 3}}
        tool:
          kind: noop
          spec:
            policy:
              rules:
                - when: ctx.x
                  then: {do: retry, set: {ctx.a: 1}}
                - when: true
                  then:
                    do: continue
                    set:
                      iter.b: 2
                - else: {then: {do: break}}
          set: {ctx.a: 1, 'iter.b': 2, ctx.c: 3, ctx.d: 4}
      - step: c
        set: {ctx: {x: 1}, ctx.y: 2}
        tool:
          kind: noop
          spec:
            policy:
              rules:
                - else:   # always
                    then:
                      do: fail
      - step: b
        loop:
          in: [1]
          iterator: item
          spec: {mode: sequential}   # one by one
        tool: {kind: noop, spec: {policy: {rules: [{when: a, then: {do: fail}}]}}}
    7:12 renamed 'items' to 'in'
    7:24 renamed 'element' to 'iterator'
    7:36 put the loop's settings under 'spec'
    7:76 removed 'collect', which has no effect
    13:15 renamed 'expr' to 'when'
    14:33 renamed 'set_ctx' to 'set', with targets in ctx
    15:21 wrote true
    18:17 renamed 'set_iter' to 'set', with targets in iter
    20:21 put the action of 'else' under 'then'
    21:7 put set_ctx, set_iter, set into one 'set'
    23:23 wrote 'ctx.d'
    25:24 wrote 'ctx.y'
    32:15 put 'then' below 'else'
    36:7 renamed 'collection' to 'in'
    37:7 renamed 'element' to 'iterator'
    38:7 removed 'enumerate', which has no effect
    39:7 put the loop's settings under 'spec'
    40:24 put 'eval' under 'spec' as 'policy.rules'
    40:32 renamed 'expr' to 'when'
    40:41 put the action under 'then'
    ");
}

#[test]
fn outcome_is_renamed_in_templates_only() {
    assert_snapshot!(steps("
  - step: start
    tool: {kind: noop, result: 'outcome {{ outcome.a }} {{ ctx.outcome }} {{ ''outcome'' }} {{ outcomes }} {{ outcome }}', outcome: outcome}
    set:
      ctx.a: \"{{ outcome.x if outcome.status == 'outcome' else \\\"n\\\" }}\"
      ctx.b: >-
        {{ outcome.x }}
        outcome
      ctx.c: '{{ dict(outcome=outcome) }}'
    next:
      arcs:
        - {step: start, when: outcome.status == 'error'}
        - step: start
          when: \"{{ outcome.ok and ctx['outcome'] }}\"
  - step: raw
    tool: {kind: python, raw: true, code: '{{ outcome }}'}
"), @r#"
      - step: start
        tool: {kind: noop, result: 'outcome {{ output.a }} {{ ctx.outcome }} {{ ''outcome'' }} {{ outcomes }} {{ output }}', outcome: outcome}
        set:
          ctx.a: "{{ output.x if output.status == 'outcome' else \"n\" }}"
          ctx.b: >-
            {{ output.x }}
            outcome
          ctx.c: '{{ dict(outcome=output) }}'
        next:
          arcs:
            - {step: start, when: output.status == 'error'}
            - step: start
              when: "{{ output.ok and ctx['outcome'] }}"
      - step: raw
        tool: {kind: python, raw: true, code: '{{ outcome }}'}
    7:44 wrote 'output' for 'outcome'
    9:18 wrote 'output' for 'outcome'
    11:12 wrote 'output' for 'outcome'
    13:31 wrote 'output' for 'outcome'
    16:31 wrote 'output' for 'outcome'
    18:21 wrote 'output' for 'outcome'
    "#);
}

#[test]
fn uncertain_fixes_are_not_applied() {
    assert_snapshot!(steps("
  - step: start
    set_ctx:
      a: 1
    set: {ctx.b: 2}
    when: ctx.x
    tool: &tool {kind: noop, args: {a: 1}}
    next: [{when: ctx.a, then: b}, {else: b}]
  - step: b
    tool: *tool
"), @r"
      - step: start
        set_ctx:
          a: 1
        set: {ctx.b: 2}
        when: ctx.x
        tool: &tool {kind: noop, args: {a: 1}}
        next: {spec: {mode: exclusive}, arcs: [{when: ctx.a, step: b}, {step: b}]}
      - step: b
        tool: *tool
    12:11 wrote 'next' with 'arcs' in mode exclusive
    12:26 wrote the branch as an arc
    12:37 wrote the branch as an arc
    left warning[W101] at 7:5, workflow[0].set_ctx: 'set_ctx' is the older name of 'set' into ctx
    left warning[W101] at 10:5, workflow[0].when: a condition on the step itself is older; when it does not hold, the step is passed over
    left warning[W101] at 11:30, workflow[0].tool.args: 'args' is the older name of 'input'
    left warning[W101] at 11:30, workflow[1].tool.args: 'args' is the older name of 'input'
    ");
}

#[test]
fn a_document_with_errors_is_unchanged() {
    let text = format!("{HEAD}  - step: a\n    args: {{a: 1}}\n    tool: {{kind: nop}}\n");
    let fixed = fix(&text);
    assert_eq!((fixed.text == text, fixed.changes.len()), (true, 0));
    assert_eq!(fixed.left.iter().map(|diagnostic| diagnostic.code).collect::<Vec<_>>(), ["E011"]);
}

#[test]
fn the_version_and_the_byte_order_mark_are_preserved() {
    let text = "\u{feff}# é first\napiVersion: 'noetl.io/v10' # é\nkind: Playbook\nmetadata: {name: é}\nworkflow: [{step: é, tool: {kind: noop, args: {é: 1}}}]\n";
    let fixed = fix(text);
    assert_eq!(
        fixed.text,
        "\u{feff}# é first\napiVersion: 'noetl.io/v2' # é\nkind: Playbook\nmetadata: {name: é}\nworkflow: [{step: é, tool: {kind: noop, input: {é: 1}}}]\n"
    );
}

#[test]
fn ten_thousand_older_steps_are_rewritten() {
    let mut text = HEAD.to_owned();
    for n in 0..10_000 {
        text.push_str(&format!("  - {{step: s{n}, args: {{a: 1}}, next: s{}}}\n", n + 1));
    }
    text.push_str("  - {step: s10000, tool: {kind: noop}}\n");
    let fixed = fix(&text);
    assert_eq!(fixed.changes.len(), 20_000);
    assert_eq!(fixed.left, []);
}

#[test]
fn rules_under_eval_become_a_policy() {
    assert_snapshot!(steps("
  - step: start
    tool:
      kind: http
      url: x
      eval:   # what to do
        - expr: '{{ output.status == \"error\" }}'
          do: retry      # again
          attempts: 4
        # in the end
        - {else: {do: continue}}
    next: {arcs: [{step: b}]}
  - step: b
    tool: {kind: http, url: x, eval: [{expr: '{{ output.ok }}', do: break}]}
    next: {arcs: [{step: c}]}
  - step: c
    tool:
      kind: http
      url: x
      spec:
        timeout: 5
      eval: [{when: true, do: fail}]
    next: {arcs: [{step: d}]}
  - step: d
    tool: {kind: http, url: x, policy: [{when: true, then: {do: fail}}]}
    next: {arcs: [{step: e}]}
  - step: e
    tool:
      - name: one
        kind: noop
        policy:
          rules:
          - when: true
            set: {ctx.x: 1}
            do: continue
"), @r#"
      - step: start
        tool:
          kind: http
          url: x
          spec:   # what to do
            policy:
              rules:
                - when: '{{ output.status == "error" }}'
                  then:
                    do: retry      # again
                    attempts: 4
                # in the end
                - {else: {then: {do: continue}}}
        next: {arcs: [{step: b}]}
      - step: b
        tool: {kind: http, url: x, spec: {policy: {rules: [{when: '{{ output.ok }}', then: {do: break}}]}}}
        next: {arcs: [{step: c}]}
      - step: c
        tool:
          kind: http
          url: x
          spec:
            policy: {rules: [{when: true, then: {do: fail}}]}
            timeout: 5
        next: {arcs: [{step: d}]}
      - step: d
        tool: {kind: http, url: x, spec: {policy: {rules: [{when: true, then: {do: fail}}]}}}
        next: {arcs: [{step: e}]}
      - step: e
        tool:
          - name: one
            kind: noop
            spec:
              policy:
                rules:
                - when: true
                  then:
                    set: {ctx.x: 1}
                    do: continue
    10:7 put 'eval' under 'spec' as 'policy.rules'
    11:11 renamed 'expr' to 'when'
    12:11 put the action under 'then'
    15:18 put the action of 'else' under 'then'
    18:32 put 'eval' under 'spec' as 'policy.rules'
    18:40 renamed 'expr' to 'when'
    18:65 put the action under 'then'
    26:27 put the action under 'then'
    27:7 put 'eval' under 'spec' as 'policy.rules'
    29:32 put 'policy' under 'spec' as 'policy.rules'
    36:9 put 'policy' under 'spec' as 'policy'
    38:13 put the action under 'then'
    "#);
}

#[test]
fn branches_become_arcs() {
    assert_snapshot!(steps("
  - step: start
    tool: {kind: noop}
    next:
      - when: '{{ ctx.a }}'   # first
        then:
          - step: a
      - when: '{{ ctx.b }}'
        then: [{step: b, set: {ctx.k: 1}}]
      - else:
          - step: c
  - step: a
    tool: {kind: noop}
    next: [{when: '{{ ctx.x }}', then: b}, {else: {step: c}}]
  - step: b
    tool: {kind: noop}
    next:
      - when: '{{ ctx.x }}'
        then: [{step: c}, {step: d}]
  - {step: c, tool: {kind: noop}}
  - {step: d, tool: {kind: noop}}
"), @r#"
      - step: start
        tool: {kind: noop}
        next:
          spec: {mode: exclusive}
          arcs:
          - when: '{{ ctx.a }}'   # first
            step: a
          - when: '{{ ctx.b }}'
            step: b
            set: {ctx.k: 1}
          - step: c
      - step: a
        tool: {kind: noop}
        next: {spec: {mode: exclusive}, arcs: [{when: '{{ ctx.x }}', step: b}, {step: c}]}
      - step: b
        tool: {kind: noop}
        next:
          - when: '{{ ctx.x }}'
            then: [{step: c}, {step: d}]
      - {step: c, tool: {kind: noop}}
      - {step: d, tool: {kind: noop}}
    9:7 wrote 'next' with 'arcs' in mode exclusive
    10:9 wrote the branch as an arc
    13:9 wrote the branch as an arc
    14:9 wrote the branch as an arc
    17:11 wrote 'next' with 'arcs' in mode exclusive
    18:34 wrote the branch as an arc
    18:45 wrote the branch as an arc
    left warning[W101] at 23:7, workflow[2].next: 'next' is a when/then/else list
    "#);
}

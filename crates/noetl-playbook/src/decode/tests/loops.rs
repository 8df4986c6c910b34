//! Loops: what they go through, how, and every mistake in them.

use insta::assert_snapshot;
use noetl_model::loops::FrameSizes;
use serde_json::json;

use super::{playbook, report_steps, shown};
use crate::document::{FailureMode, LoopExec, LoopMode, LoopSource, LoopSpec, StepWork};

fn one(text: &str) -> LoopSpec {
    let mut playbook = playbook(&format!("  - {{step: start, tool: {{kind: noop}}, {text}}}\n"));
    playbook.steps.remove(0).repeat.expect("a loop")
}

fn items(written: &LoopSpec) -> serde_json::Value {
    match &written.over {
        LoopSource::Items(items) => shown(items),
        LoopSource::Cursor(_) => panic!("a cursor"),
    }
}

#[test]
fn a_loop_iterates_over_a_template_or_a_literal() {
    let written = one("loop: {in: '{{ workload.items }}', iterator: item}");
    assert_eq!((&*written.iterator, items(&written)), ("item", json!("<{{ workload.items }}>")));
    assert_eq!(written.mode, LoopMode::Sequential);
    assert_eq!(written.exec, LoopExec::Distributed);
    assert_eq!(written.failure, FailureMode::FailFast);
    assert!(written.max_in_flight.is_none());
    assert_eq!(items(&one("loop: {in: [1, '{{ x }}'], iterator: i}")), json!([1, "<{{ x }}>"]));
    assert_eq!(items(&one("loop: {in: {a: 1}, iterator: i}")), json!({"a": 1}));
    assert_eq!(items(&one("loop: {in: 3, iterator: i}")), json!(3));
}

#[test]
fn settings_of_a_loop_are_read() {
    let written = one(
        "loop: {in: [1], iterator: i, spec: {mode: parallel, max_in_flight: 4, policy: {exec: local, failure: {mode: best_effort}}}}",
    );
    assert_eq!(written.mode, LoopMode::Parallel);
    assert_eq!(written.max_in_flight.as_ref().map(shown), Some(json!(4)));
    assert_eq!(written.exec, LoopExec::Local);
    assert_eq!(written.failure, FailureMode::BestEffort);
    let written = one(
        "loop: {in: [1], iterator: i, spec: {mode: parallel, policy: {max_in_flight: '{{ workload.n }}'}}}, spec: {policy: {failure: {mode: best_effort}}}",
    );
    assert_eq!(written.max_in_flight.as_ref().map(shown), Some(json!("<{{ workload.n }}>")));
    assert_eq!(written.failure, FailureMode::BestEffort);
}

#[test]
fn a_local_loop_runs_a_pipeline() {
    let playbook = playbook(
        "  - {step: start, loop: {in: [1], iterator: i, spec: {policy: {exec: local}}}, tool: {kind: noop}}\n",
    );
    assert!(
        matches!(&playbook.steps[0].work, StepWork::Pipeline(pipeline) if pipeline.tasks.len() == 1)
    );
}

#[test]
fn a_cursor_claims_rows_with_a_tool() {
    let written = one(
        "loop: {iterator: row, cursor: {auth: pg, claim: 'select {{ __frame_max_rows }}', options: {schema: s}}, spec: {mode: cursor, max_in_flight: 2, frame: {max_rows: 10, row_concurrency: 5, process: frame, max_attempts: 3}}}",
    );
    let LoopSource::Cursor(cursor) = &written.over else { panic!("items") };
    assert_eq!(&*cursor.claim.kind, "postgres");
    assert_eq!(
        shown(&cursor.claim.config),
        json!({"auth": "pg", "query": "<select {{ __frame_max_rows }}>", "schema": "s"})
    );
    let expected = FrameSizes { max_rows: 10, row_concurrency: 5, max_attempts: 3 };
    assert_eq!((cursor.frame.sizes, cursor.frame.whole), (expected, true));
    assert_eq!(written.mode, LoopMode::Parallel);
    let written =
        one("loop: {iterator: row, cursor: {kind: sqlite, db_path: a.db, claim: select 1}}");
    let LoopSource::Cursor(cursor) = &written.over else { panic!("items") };
    let expected = FrameSizes { max_rows: 1, row_concurrency: 1, max_attempts: 1 };
    assert_eq!((cursor.frame.sizes, cursor.frame.whole), (expected, false));
    assert!(cursor.frame.templates.is_empty());
    assert_eq!(written.mode, LoopMode::Sequential);
    let written =
        one("loop: {iterator: row, cursor: {kind: sqlite, db_path: a.db, claim: select 1, \
         timeout: '{{ t }}'}, spec: {frame: {max_rows: '{{ n }}', row_concurrency: '{{ k }}'}}}");
    let LoopSource::Cursor(cursor) = &written.over else { panic!("items") };
    let templated: Vec<_> = cursor.frame.templates.iter().map(|(size, _)| size.key()).collect();
    assert_eq!(templated, ["max_rows", "row_concurrency"]);
    assert_eq!(written.mode, LoopMode::Parallel, "rows may run beside each other");
    assert_eq!(shown(&cursor.claim.config)["timeout"], json!("<{{ t }}>"));
}

#[test]
fn older_keys_of_a_loop_are_read() {
    let written =
        one("loop: {collection: '{{ workload.a }}', element: x, mode: parallel, concurrency: 3}");
    assert_eq!((&*written.iterator, items(&written)), ("x", json!("<{{ workload.a }}>")));
    assert_eq!(written.mode, LoopMode::Parallel);
    assert_eq!(written.max_in_flight.as_ref().map(shown), Some(json!(3)));
    assert_snapshot!(report_steps("
  - step: a
    loop: {items: [1], element: x, mode: parallel, concurrency: 3, collect: y, enumerate: true}
    tool: {kind: noop}
  - step: b
    loop: {items: [1], in: [2], element: x, iterator: y, pagination: {}}
    tool: {kind: noop}
"), @r"
    warning[W101] at 7:12, workflow[0].loop.items: 'items' is the older name of 'in'
      help: write 'in'
    warning[W101] at 7:24, workflow[0].loop.element: 'element' is the older name of 'iterator'
      help: write 'iterator'
    warning[W101] at 7:36, workflow[0].loop.mode: 'mode' is the older name of 'spec.mode'
      help: write 'spec: {mode: …}'
    warning[W101] at 7:52, workflow[0].loop.concurrency: 'concurrency' is the older name of 'spec.max_in_flight'
      help: write 'spec: {max_in_flight: …}'
    warning[W101] at 7:68, workflow[0].loop.collect: 'collect' is not needed
      help: remove it; the step's result has every item's data under 'results'
    warning[W101] at 7:80, workflow[0].loop.enumerate: 'enumerate' is not needed
      help: remove it; the place of the item is 'iter.index'
    error[E016] at 10:12, workflow[1].loop.items: 'items' repeats 'in'
      help: keep 'in'
    error[E016] at 10:33, workflow[1].loop.element: 'element' repeats 'iterator'
      help: keep 'iterator'
    error[E060] at 10:58, workflow[1].loop.pagination: 'pagination' is not part of the language
      help: lead an arc back to the step, or jump back within its pipeline, and keep the page in ctx
    ");
}

#[test]
fn mistakes_in_loops_are_reported() {
    assert_snapshot!(report_steps("
  - step: a
    loop: {in: \"{{ workload.items }}\"}
    tool: {kind: noop}
  - step: b
    loop: {in: [1], iterator: i, spec: {mode: paralel, max_in_flight: 0}, colour: y}
    tool: {kind: noop}
  - step: c
    loop: {cursor: {auth: x, claim: y}, in: [1], iterator: i}
    tool: {kind: noop}
  - step: d
    loop: {iterator: i, spec: {mode: cursor}}
    tool: {kind: noop}
  - step: e
    loop: {in: [1], iterator: i, spec: {mode: cursor}}
    tool: {kind: noop}
  - step: f
    loop: {iterator: i, cursor: {auth: x, claim: y}, spec: {mode: parallel, frame: {max_rows: 0, row_concurrency: many, process: all}}}
    tool: {kind: noop}
  - step: g
    loop: {iterator: i, cursor: {kind: postgres}}
    tool: {kind: noop}
  - step: h
    loop: {iterator: i, cursor: {kind: mysql, auth: x, claim: ''}}
    tool: {kind: noop}
  - step: i
    loop: {in: true, iterator: 'a b'}
    tool: {kind: noop}
  - step: j
    loop: text
    tool: {kind: noop}
  - step: k
    loop: {in: [1], iterator: 5, spec: {max_in_flight: 1.5, mode: parallel, policy: {exec: here, failure: {mode: never}, max_in_flight: 3}}}
    tool: {kind: noop}
  - step: l
    loop: {in: [1], iterator: item}
    next: {arcs: [{step: a}]}
  - step: m
    loop: {in: '{{ open', iterator: item}
    tool: {kind: noop}
"), @r#"
    error[E030] at 7:11, workflow[0].loop: the loop has no 'iterator'
      help: name the variable that holds the item: 'iterator: item'
    warning[W109] at 10:31, workflow[1].loop.iterator: the item 'i' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    error[E030] at 10:47, workflow[1].loop.spec.mode: 'paralel' is not possible here
      help: did you mean 'parallel'? write sequential, parallel or cursor
    error[E030] at 10:71, workflow[1].loop.spec.max_in_flight: 'max_in_flight' is at least 1
      help: write a whole number from 1 or a template, or leave it out
    warning[W114] at 10:71, workflow[1].loop.spec.max_in_flight: 'max_in_flight' has no effect on a loop that runs item by item
      help: write 'mode: parallel', or remove it
    warning[W102] at 10:75, workflow[1].loop.colour: unknown key 'colour', which has no effect
      help: remove it; known here: in, iterator, cursor, spec, desc
    error[E030] at 13:11, workflow[2].loop: the loop has both 'in' and 'cursor'
      help: keep one of the two
    warning[W109] at 13:60, workflow[2].loop.iterator: the item 'i' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    error[E030] at 16:11, workflow[3].loop: the loop has neither 'in' nor 'cursor'
      help: mode cursor goes through rows: 'cursor: {auth: …, claim: …}'
    warning[W109] at 16:22, workflow[3].loop.iterator: the item 'i' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    error[E030] at 19:11, workflow[4].loop: mode cursor goes through rows, and the loop has no 'cursor'
      help: write 'mode: sequential' or 'mode: parallel'
    warning[W109] at 19:31, workflow[4].loop.iterator: the item 'i' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    error[E030] at 22:11, workflow[5].loop: a loop over a cursor has mode cursor
      help: write 'mode: cursor', or leave the mode out
    warning[W109] at 22:22, workflow[5].loop.iterator: the item 'i' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    error[E030] at 22:95, workflow[5].loop.spec.frame.max_rows: 'max_rows' is a whole number from 1
      help: write 'max_rows: 10', or leave it out
    error[E030] at 22:115, workflow[5].loop.spec.frame.row_concurrency: 'row_concurrency' is a whole number from 1
      help: write 'row_concurrency: 10', or leave it out
    error[E030] at 22:130, workflow[5].loop.spec.frame.process: 'all' is not possible here
      help: write row or frame
    warning[W109] at 25:22, workflow[6].loop.iterator: the item 'i' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    error[E031] at 25:33, workflow[6].loop.cursor: the cursor has no 'claim'
      help: add 'claim' with the statement that marks rows and returns them
    error[E031] at 25:33, workflow[6].loop.cursor: the cursor has no 'auth'
      help: add 'auth' with the name of the database's credential
    warning[W109] at 28:22, workflow[7].loop.iterator: the item 'i' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    error[E031] at 28:33, workflow[7].loop.cursor: the cursor has no 'claim'
      help: add 'claim' with the statement that marks rows and returns them
    error[E031] at 28:40, workflow[7].loop.cursor.kind: 'mysql' is not possible here
      help: write postgres, sqlite or duckdb
    error[E030] at 31:16, workflow[8].loop.in: a loop cannot go through true or false
      help: write 'in: "{{ items }}"', or a list
    error[E030] at 31:32, workflow[8].loop.iterator: the iterator is not a name that templates can use
      help: name the variable that holds the item: 'iterator: item'
    error[E009] at 34:11, workflow[9].loop: expected a mapping, found text
      help: write 'loop: {in: "{{ items }}", iterator: item}'
    error[E030] at 37:31, workflow[10].loop.iterator: the iterator is not a name that templates can use
      help: name the variable that holds the item: 'iterator: item'
    error[E030] at 37:56, workflow[10].loop.spec.max_in_flight: 'max_in_flight' is at least 1
      help: write a whole number from 1 or a template, or leave it out
    error[E030] at 37:92, workflow[10].loop.spec.policy.exec: 'here' is not possible here
      help: write distributed or local
    error[E009] at 37:114, workflow[10].loop.spec.policy.failure.mode: 'never' is not possible here
      help: write fail_fast or best_effort
    error[E016] at 37:137, workflow[10].loop.spec.policy.max_in_flight: 'max_in_flight' is written twice
      help: keep the one under 'spec'
    error[E030] at 40:5, workflow[11].loop: the loop has no tool to run for each item
      help: add 'tool: {kind: …}' to the step
    error[E050] at 43:20, workflow[12].loop.in: the template does not compile: unexpected end of input, expected end of variable block
      help: check the braces, quotes and names of the template
    "#);
}

#[test]
fn questionable_loops_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: a
    loop: {in: workload.items, iterator: ctx, spec: {max_in_flight: 3, frame: {}}}
    tool: {kind: noop}
  - step: b
    loop: {in: '[1, 2]', iterator: a, spec: {mode: parallel}}
    tool: {kind: noop, set: {ctx.last: 1, iter.x: 2}}
  - step: c
    loop: {in: [1], iterator: i, spec: {mode: parallel}}
    tool: [{kind: noop}, {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set: {ctx.y: 1}}}}]}}}]
  - step: d
    loop: {in: [1], iterator: i, spec: {mode: parallel}}
    tool: {kind: noop, set: {iter.x: 2}}
    set: {iter.z: 1}
  - step: e
    loop: {iterator: i, cursor: {auth: x, claim: y}, spec: {policy: {exec: local}, frame: {max_seconds: 3, rows: 4, max_rows: '{{ n }}', lease_seconds: '{{ n }}'}}}
    tool: {kind: noop}
"), @r#"
    warning[W116] at 7:16, workflow[0].loop.in: the loop goes through one text, not through what it names
      help: write 'in: "{{ workload.items }}"' if that is a name
    warning[W109] at 7:42, workflow[0].loop.iterator: the item 'ctx' has the name of something templates always see
      help: name the item otherwise: 'iterator: item'
    warning[W114] at 7:69, workflow[0].loop.spec.max_in_flight: 'max_in_flight' has no effect on a loop that runs item by item
      help: write 'mode: parallel', or remove it
    warning[W114] at 7:79, workflow[0].loop.spec.frame: 'frame' has no effect on a loop without 'cursor'
      help: remove it
    warning[W103] at 9:11, workflow[1].step: no path leads to step 'b'
      help: lead an arc to it, or remove it
    warning[W107] at 10:11, workflow[1].loop: items that run beside each other write ctx; the last to end has the last word
      help: write 'iter.name', read 'results' of the step, or loop in mode sequential
    warning[W109] at 10:36, workflow[1].loop.iterator: the item 'a' has the name of a step and hides its result
      help: name the item otherwise: 'iterator: item'
    warning[W103] at 12:11, workflow[2].step: no path leads to step 'c'
      help: lead an arc to it, or remove it
    warning[W107] at 13:11, workflow[2].loop: items that run beside each other write ctx; the last to end has the last word
      help: write 'iter.name', read 'results' of the step, or loop in mode sequential
    warning[W103] at 15:11, workflow[3].step: no path leads to step 'd'
      help: lead an arc to it, or remove it
    warning[W114] at 18:10, workflow[3].set: 'iter' ends with the iteration, so nothing reads what is assigned here
      help: assign 'iter' beside a task or in its rules, or write 'ctx.name'
    warning[W103] at 19:11, workflow[4].step: no path leads to step 'e'
      help: lead an arc to it, or remove it
    warning[W114] at 20:11, workflow[4].loop: 'exec: local' has no effect on a cursor, whose rows are claimed in between
      help: remove it
    warning[W114] at 20:92, workflow[4].loop.spec.frame.max_seconds: 'max_seconds' of a frame has no effect
      help: remove it; a frame has as long as its rows take, and 'timeout' bounds them
    warning[W102] at 20:108, workflow[4].loop.spec.frame.rows: unknown key 'rows', which has no effect
      help: remove it; known here: max_rows, row_concurrency, process, max_attempts
    warning[W108] at 20:127, workflow[4].loop.spec.frame.max_rows: nothing in this playbook gives 'n' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W114] at 20:138, workflow[4].loop.spec.frame.lease_seconds: 'lease_seconds' of a frame has no effect
      help: remove it; a frame has as long as its rows take, and 'timeout' bounds them
    "#);
}

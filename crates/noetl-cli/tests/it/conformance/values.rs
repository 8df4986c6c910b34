//! C36–C38, C40, C41, C43–C45: variables, types, results.

use noetl_model::Fact;
use serde_json::json;

use super::plane::{TestPlane, run};

#[tokio::test]
async fn c36_a_condition_sees_values_set_by_its_step() {
    let ended = run("
  - {step: a, tool: {kind: noop, result: {n: 4}}, set: {ctx.n: '{{ output.n * 2 }}'},
     next: {arcs: [{step: no, when: 'ctx.n < 8'}, {step: yes, when: 'ctx.n == 8'}]}}
  - {step: no, tool: {kind: noop}}
  - {step: yes, tool: {kind: noop}}
")
    .await
    .expect_completed();
    assert_eq!(ended.entered(), "a yes");
}

#[tokio::test]
async fn c37_values_set_by_an_arc_persist() {
    let ended = run("
  - {step: a, tool: {kind: noop, result: {v: 1}}, next: {arcs: [{step: b, set: {ctx.from: '{{ output.v }}'}}]}}
  - {step: b, tool: {kind: noop}, next: {arcs: [{step: c}]}}
  - {step: c, tool: {kind: noop}, next: {arcs: [{step: d}]}}
  - {step: d, tool: {kind: noop, result: '{{ ctx.from }}'}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!(1));
}

#[tokio::test]
async fn c38_nested_context_names_are_set_and_read() {
    let ended = run("
  - {step: a, tool: {kind: noop}, set: {ctx.a.b: 7, ctx.a.c.d: 8}, next: {arcs: [{step: e}]}}
  - {step: e, tool: {kind: noop, result: ['{{ ctx.a.b }}', '{{ ctx.a }}']}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!([7, {"b": 7, "c": {"d": 8}}]));
}

#[tokio::test]
async fn c40_text_that_looks_like_a_number_stays_text() {
    let ended = run("workload: {zip: '00501', empty: '', big: '12345678901234567890', json: '{\"a\":1}'}
workflow:
  - {step: a, tool: {kind: noop, result: {zip: '{{ workload.zip }}', trimmed: '{{ workload.zip | trim }}',
     empty: '{{ workload.empty }}', big: '{{ workload.big }}', json: '{{ workload.json }}', literal: '00042', none: 'null'}},
     set: {ctx.zip: '{{ output.zip }}'}, next: {arcs: [{step: b}]}}
  - {step: b, tool: {kind: python, input: {zip: '{{ ctx.zip }}', whole: '{{ a }}'},
     code: 'result = {**whole, \"python\": zip}'}}
")
    .await
    .expect_completed();
    let expected = json!({
        "zip": "00501", "trimmed": "00501", "empty": "", "big": "12345678901234567890",
        "json": "{\"a\":1}", "literal": "00042", "none": "null", "python": "00501",
    });
    assert_eq!(*ended.result(), expected);
}

#[tokio::test]
async fn c41_null_is_a_value_and_a_missing_name_is_undefined() {
    let ended = run("workload: {nothing: null}
workflow:
  - {step: a, tool: {kind: noop, result: {none: '{{ workload.nothing is none }}', defined: '{{ workload.nothing is defined }}',
     missing: '{{ workload.other is defined }}', default: \"{{ workload.other | default('x') }}\",
     kept: \"{{ workload.nothing | default('x') }}\", deep: '{{ workload.a.b.c }}'}}}
")
    .await
    .expect_completed();
    let expected = json!({
        "none": true, "defined": true, "missing": false, "default": "x", "kept": null, "deep": null,
    });
    assert_eq!(*ended.result(), expected);
}

#[tokio::test]
async fn c43_five_megabytes_are_stored_by_reference_and_read_like_inline_values() {
    let ended = run("workload: {line: '0123456789012345678901234567890123456789'}
workflow:
  - {step: big, tool: {kind: noop, result: {lines: '{{ [workload.line * 2500] * 50 }}', n: 50}}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {n: '{{ big.n }}', at: '{{ big.lines[49][-1] }}', last: '{{ big.lines | length }}',
     ref: '{{ big._ref is defined }}', small: '{{ end._ref is defined }}'}}}
")
    .await
    .expect_completed();
    assert_eq!(
        *ended.result(),
        json!({"n": 50, "at": "9", "last": 50, "ref": true, "small": false})
    );
    let reference = ended.log.iter().find_map(|event| match &event.fact {
        Fact::CallDone { step, reference, .. } if &**step == "big" => reference.clone(),
        _ => None,
    });
    assert!(reference.unwrap().bytes > 5_000_000);
}

#[tokio::test]
async fn c44_a_step_overrides_the_arguments_of_a_workbook_task() {
    let ended = run("workbook:
  - {name: score, tool: {kind: python, input: {base: 10, bonus: 1}, code: 'result = base + bonus'}}
workflow:
  - {step: a, tool: {kind: workbook, name: score}, next: {arcs: [{step: b}]}}
  - {step: b, tool: {kind: workbook, name: score, input: {bonus: 5}}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: ['{{ a }}', '{{ b }}']}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!([11, 15]));
}

#[tokio::test]
async fn c45_a_call_returns_the_data_of_a_step_of_the_child() {
    let plane = TestPlane::open().await;
    plane
        .register("child", "workload: {n: 0}
workflow:
  - {step: start, tool: {kind: noop, result: {twice: '{{ workload.n * 2 }}'}}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {other: true}}}
")
        .await;
    let id = plane
        .start("
  - {step: call, tool: {kind: playbook, path: child, payload: {n: 21}, return_step: start}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {twice: '{{ call.twice }}', other: '{{ call.other is defined }}',
     status: '{{ call._meta.status }}'}}}
")
        .await;
    let ended = plane.ended(id).await.expect_completed();
    assert_eq!(*ended.result(), json!({"twice": 42, "other": false, "status": "COMPLETED"}));
    plane.close().await;
}

//! Recorded histories against other versions of their playbook.

use std::sync::Arc;

use serde_json::json;

use super::harness::{Run, playbook};
use crate::first_divergence;

const OLD: &str = "- {step: a, tool: {kind: noop, result: '{{ workload.n }}'}, \
     set: {ctx.k: '{{ output.v }}'}, next: {arcs: [{step: b, when: '{{ output.v > 5 }}'}, {step: c}]}}\n\
     - {step: b, tool: {kind: noop, result: '{{ ctx.k }}'}}\n- {step: c, tool: {kind: noop}}\n";

fn recorded() -> Run {
    let mut run = Run::started(OLD);
    run.complete("a", json!({"v": 7}));
    run.complete("b", json!(1));
    run
}

fn difference(text: &str) -> Option<String> {
    let run = recorded();
    let divergence = first_divergence(&playbook(text), &run.log, &Arc::default(), |_| None);
    divergence.map(|divergence| {
        format!("{}: {} | {}", divergence.step, divergence.recorded, divergence.now)
    })
}

#[test]
fn the_same_playbook_makes_the_same_decisions() {
    assert_eq!(difference(OLD), None);
    // What no history met makes no difference.
    assert_eq!(
        difference(
            &OLD.replace(
                "{step: c, tool: {kind: noop}}",
                "{step: c, tool: {kind: noop, result: 1}}"
            )
        ),
        None
    );
}

#[test]
fn another_condition_takes_another_arc() {
    let divergence = difference(&OLD.replace("> 5", "> 9")).unwrap();
    assert_eq!(divergence, "a: step 'a' went to b | it goes to c");
}

#[test]
fn different_variables_and_settings_are_reported() {
    let divergence = difference(&OLD.replace("'{{ output.v }}'", "'{{ output.v + 1 }}'")).unwrap();
    assert_eq!(divergence, "a: step 'a' set {\"k\":7} | it sets {\"k\":8}");
    let divergence = difference(&OLD.replace("'{{ ctx.k }}'", "'{{ ctx.k * 2 }}'")).unwrap();
    assert_eq!(
        divergence,
        "b: step 'b' handed out noop {\"result\":7} {} | it hands out noop {\"result\":14} {}"
    );
}

#[test]
fn a_removed_step_is_reported() {
    let text = "- {step: a, tool: {kind: noop, result: '{{ workload.n }}'}, set: {ctx.k: '{{ output.v }}'}}\n";
    assert_eq!(difference(text).unwrap(), "a: step 'a' went to b | it goes nowhere");
    let text = OLD.replace("step: a", "step: begin");
    assert_eq!(difference(&text).unwrap(), "a: step 'a' was entered | there is no such step");
}

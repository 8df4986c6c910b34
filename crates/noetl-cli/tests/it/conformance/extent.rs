//! C57, C58: much of it.

use std::fmt::Write as _;

use noetl_model::Fact;
use noetl_model::event::LoopEvent;
use serde_json::json;

use super::plane::run;

/// The events of a chain of this many steps.
async fn events_of_a_chain(steps: usize) -> usize {
    let mut text = String::new();
    for step in 0..steps {
        let next = format!("next: {{arcs: [{{step: s{}}}]}}", step + 1);
        writeln!(text, "  - {{step: s{step}, tool: {{kind: noop}}, {next}}}").unwrap();
    }
    writeln!(text, "  - {{step: s{steps}, tool: {{kind: noop}}}}").unwrap();
    let ended = run(&text).await.expect_completed();
    assert_eq!(usize::try_from(ended.row.steps_completed).unwrap(), steps + 1);
    ended.log.len()
}

#[tokio::test]
async fn c57_events_per_step_are_equal_for_two_hundred_and_two_thousand_steps() {
    let (few, many) = (events_of_a_chain(200).await, events_of_a_chain(2000).await);
    assert_eq!((many - few) % 1800, 0);
    assert_eq!((many - few) / 1800, (few - 2) / 201, "events per step");
}

#[tokio::test]
async fn c58_results_of_ten_thousand_items_with_64_in_flight_are_in_order() {
    let ended = run("
  - {step: each, loop: {in: '{{ range(10000) | list }}', iterator: it, spec: {mode: parallel, max_in_flight: 64}},
     tool: {kind: noop, result: '{{ it }}'}, set: {ctx.same: '{{ output.results == (range(10000) | list) }}'},
     next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {same: '{{ ctx.same }}', n: '{{ each.stats.success }}'}}}
")
    .await
    .expect_completed();
    assert_eq!(*ended.result(), json!({"same": true, "n": 10000}));
    let (mut open, mut most) = (0_i64, 0);
    for event in &ended.log {
        match &event.fact {
            Fact::CommandIssued(_) => open += 1,
            Fact::CommandCompleted { .. } => open -= 1,
            _ => {}
        }
        most = most.max(open);
    }
    assert_eq!(most, 64);
    let ends = ended.log.iter().filter(
        |event| matches!(&event.fact, Fact::Loop(fact) if matches!(fact.what, LoopEvent::Done(_))),
    );
    assert_eq!(ends.count(), 1);
}

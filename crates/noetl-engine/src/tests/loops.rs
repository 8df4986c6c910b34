//! Loops: what they go through, what runs at a time, how they end.

use serde_json::{Value, json};

use super::harness::{Run, check, playbook};
use crate::{Status, ValueLimits};

fn looped(spec: &str, over: &str) -> String {
    format!(
        "- {{step: a, loop: {{in: {over}, iterator: x, spec: {spec}}}, \
         tool: {{kind: noop, result: '{{{{ iter.x }}}}'}}, next: {{arcs: [{{step: b}}]}}}}\n\
         - {{step: b, tool: {{kind: noop, result: '{{{{ a.stats }}}}'}}}}\n"
    )
}

#[test]
fn items_run_sequentially() {
    check(
        &looped("{mode: sequential}", "[5, 6]"),
        "start; complete a 50; complete a 60; complete b",
        "\
start
  playbook_started
  step.enter a #1
  loop.started a 2 items
  loop.items a 2 from 0
  command.issued a item 0 attempt 1
complete a 50
  call.done a 50
  command.completed a item 0
  command.issued a item 1 attempt 1
complete a 60
  call.done a 60
  command.completed a item 1
  loop.done a 2 of 2, 0 failed
  step.exit a done -> b
  step.enter b #1
  command.issued b attempt 1
complete b
  command.parked b on an answer
",
    );
}

#[test]
fn items_in_flight_are_limited_by_the_loop() {
    let mut run = Run::started(&looped("{mode: parallel, max_in_flight: 2}", "6"));
    let mut ended = 0;
    while run.open() != ["b"] {
        assert!(run.open().len() <= 2, "{:?}", run.open());
        let (command, _) = run.state.open_commands().last().unwrap();
        let item = run.state.open_command(command).unwrap().issued.item.clone().unwrap();
        run.complete(&format!("a:{}", item.index), json!(item.index * 10));
        ended += 1;
    }
    assert_eq!(ended, 6);
    // In the order of the items, whatever the order of their ends.
    let result = run.result("a");
    assert_eq!(result["results"], json!([0, 10, 20, 30, 40, 50]));
    assert_eq!(result["stats"], json!({"total": 6, "success": 6, "failed": 0, "skipped": 0}));
}

#[test]
fn a_loop_without_items_completes_at_once() {
    for over in ["[]", "'{{ missing }}'", "'{{ [] }}'", "0"] {
        let run = Run::started(&looped("{mode: parallel}", over));
        assert_eq!(run.open(), ["b"], "{over}");
        assert_eq!(run.result("a")["results"], json!([]));
    }
}

#[test]
fn values_of_a_loop_are_coerced_to_a_list() {
    let items = |over: &str| {
        let mut run = Run::started(&looped("{mode: sequential}", over));
        let mut items = Vec::new();
        while run.open() == ["a"] {
            let (_, open) = run.state.open_commands().next().unwrap();
            let item = open.issued.config["result"].clone();
            items.push(item.clone());
            run.complete("a", item);
        }
        Value::Array(items)
    };
    assert_eq!(
        items("'{{ {\"k\": 1, \"l\": [2]} }}'"),
        json!([
            {"key": "k", "value": 1}, {"key": "l", "value": [2]},
        ])
    );
    assert_eq!(items("'{{ workload.n }}'"), json!([0, 1, 2]));
    assert_eq!(items("'[1, \"two\"]'"), json!([1, "two"]));
    assert_eq!(items("'a,b'"), json!(["a,b"]));
    let run = Run::started(&looped("{mode: sequential}", "'{{ true }}'"));
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().contains("cannot go through true"));
}

#[test]
fn a_failed_item_ends_a_loop_that_fails_fast() {
    let mut run = Run::started(&looped("{mode: parallel, max_in_flight: 2}", "6"));
    run.claim("a:0", "w");
    run.claim("a:1", "w");
    run.fail("a:1");
    assert_eq!(run.state.status(), Status::Running, "what runs is let end");
    assert_eq!(run.open(), ["a"]);
    run.complete("a:0", json!(1));
    assert_eq!(run.state.status(), Status::Failed);
    let issued = run.log.iter().filter(|event| super::harness::is_issued(event)).count();
    assert_eq!(issued, 2, "nothing new began");
    assert_eq!(run.state.summary().error.unwrap(), "unknown: item 1: it broke");
}

fn own(tool: &str) -> String {
    format!(
        "- {{step: a, loop: {{in: 4, iterator: x, spec: {{mode: parallel, max_in_flight: 2}}}}, \
         tool: {tool}}}\n"
    )
}

#[test]
fn open_calls_end_before_a_failing_loop_fails() {
    check(
        &own("{kind: playbook, path: p, return_result: true}"),
        "start; childfails a:1; child a:0 7",
        "\
start
  playbook_started
  step.enter a #1
  loop.started a 4 items
  loop.items a 4 from 0
  command.issued a item 0 attempt 1
  command.claimed a by control-plane
  command.parked a on a child
  command.issued a item 1 attempt 1
  command.claimed a by control-plane
  command.parked a on a child
childfails a:1
  command.failed a item 1 child_failed: it broke
child a:0 7
  call.done a 7
  command.completed a item 0
  step.exit a failed: child_failed: item 1: it broke -> nowhere
  playbook.failed at a child_failed: item 1: it broke
",
    );
}

#[test]
fn waits_and_approvals_end_before_a_loop_that_fails_fast() {
    // Every other item fails at once: there is no such time.
    let wait = "{kind: wait, until: '{{ \"2030-01-01T00:00:00Z\" if x == 0 else \"never\" }}'}";
    check(
        &own(wait),
        "start; wake a:0",
        "\
start
  playbook_started
  step.enter a #1
  loop.started a 4 items
  loop.items a 4 from 0
  command.issued a item 0 attempt 1
  command.claimed a by control-plane
  command.parked a until a time
  command.issued a item 1 attempt 1
  command.claimed a by control-plane
  command.failed a item 1 config: `until` must be a time such as 2030-01-31T08:00:00Z, not \"never\"
wake a:0
  call.done a {\"status\":\"ok\",\"until\":\"2030-01-01T00:00:00Z\"}
  command.completed a item 0
  step.exit a failed: config: item 1: `until` must be a time such as 2030-01-31T08:00:00Z, not \"never\" -> nowhere
  playbook.failed at a config: item 1: `until` must be a time such as 2030-01-31T08:00:00Z, not \"never\"
",
    );
    let mut run = Run::started(&own("{kind: approval}"));
    run.script("wake a:1").unwrap();
    assert_eq!(run.open(), ["a"], "somebody may still answer the other");
    run.script("approve a:0 {\"approved\": true}").unwrap();
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().starts_with("timeout: item 1: "));
}

#[test]
fn a_step_timeout_bounds_the_wait_of_a_failed_loop() {
    let text = own("{kind: approval}").replace("step: a,", "step: a, spec: {timeout: 60s},");
    let mut run = Run::started(&text);
    run.script("wake a:1").unwrap();
    assert_eq!(run.state.status(), Status::Running);
    run.timeout("a");
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.open().is_empty());
}

#[test]
fn a_loop_with_best_effort_runs_all_items() {
    let spec = "{mode: sequential, policy: {failure: {mode: best_effort}}}";
    let mut run = Run::started(&looped(spec, "3"));
    run.complete("a", json!("x"));
    run.fail("a");
    run.complete("a", json!("z"));
    assert_eq!(run.open(), ["b"]);
    let result = run.result("a");
    assert_eq!(result["results"], json!(["x", null, "z"]));
    assert_eq!(result["stats"], json!({"total": 3, "success": 2, "failed": 1, "skipped": 0}));
    assert_eq!(result["errors"][0]["index"], json!(1));
    assert_eq!(result["errors"][0]["error"]["message"], json!("it broke"));
}

#[test]
fn an_error_arc_handles_a_failed_loop() {
    let mut run = Run::started(
        "- {step: a, loop: {in: '{{ [1, 2] }}', iterator: x, spec: {mode: sequential}}, \
         tool: {kind: noop}, next: {arcs: [{step: b, on: error}, {step: c}]}}\n\
         - {step: b, tool: {kind: noop, result: '{{ a.error.message }}'}}\n\
         - {step: c, tool: {kind: noop}}\n",
    );
    run.fail("a");
    assert_eq!(run.open(), ["b"]);
    let (_, open) = run.state.open_commands().next().unwrap();
    assert_eq!(open.issued.config["result"], json!("item 0: it broke"));
    run.complete("b", json!(null));
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn a_loop_entered_again_repeats_its_items() {
    let mut run = Run::started(
        "- {step: a, loop: {in: '{{ [1, 2, 3] }}', iterator: x, spec: {mode: sequential}}, \
         tool: {kind: noop}, set: {ctx.k: '{{ ctx.k | default(0) | int + 1 }}'}, \
         next: {arcs: [{step: a, when: '{{ ctx.k < 2 }}'}]}}\n",
    );
    let mut items = 0;
    while run.state.status() == Status::Running {
        run.complete("a", json!(1));
        items += 1;
    }
    assert_eq!(items, 6);
    assert_eq!(run.step_runs("a"), 2);
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn arcs_of_a_loop_match_the_loop_done_event() {
    let mut run = Run::started(
        "- {step: a, loop: {in: '{{ [1] }}', iterator: x}, tool: {kind: noop}, \
         next: {arcs: [{step: b, when: \"{{ event.name == 'loop.done' }}\"}]}}\n\
         - {step: b, tool: {kind: noop}}\n",
    );
    run.complete("a", json!(1));
    assert_eq!(run.open(), ["b"]);
}

#[test]
fn an_item_that_fails_to_render_ends_a_fail_fast_loop() {
    for items in ["[2, 1]", "[2, 1, 3]"] {
        let text = format!(
            "- {{step: a, loop: {{in: {items}, iterator: x, spec: {{mode: sequential}}}}, \
             tool: {{kind: noop, result: '{{{{ 1 / (x - 1) }}}}'}}}}\n"
        );
        let mut run = Run::started(&text);
        run.complete("a", json!(1));
        assert_eq!(run.state.status(), Status::Failed, "{items}");
    }
}

#[test]
fn an_item_that_fails_to_render_does_not_fail_other_items() {
    let text = "- {step: a, loop: {in: '{{ [1, 2] }}', iterator: x, \
                spec: {mode: sequential, policy: {failure: {mode: best_effort}}}}, \
                tool: {kind: noop, result: '{{ 1 / (x - 1) }}'}}\n";
    let mut run = Run::started(text);
    run.complete("a", json!(1));
    assert_eq!(run.state.status(), Status::Completed);
    let result = run.result("a");
    assert_eq!(result["stats"]["failed"], json!(1));
    assert_eq!(result["errors"][0]["error"]["kind"], json!("template_error"));
}

#[test]
fn a_lost_worker_costs_an_item_one_attempt() {
    let mut run = Run::started(&looped("{mode: sequential}", "2"));
    run.claim("a:0", "w");
    run.expire("a:0");
    assert_eq!(run.open(), ["a"]);
    for _ in 0..2 {
        run.claim("a:0", "w");
        run.expire("a:0");
    }
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.state.summary().error.unwrap().contains("lost its worker 3 times"));
}

#[test]
fn a_step_timeout_stops_its_items() {
    let text = "- {step: a, spec: {timeout: 5s}, \
                loop: {in: '{{ [1, 2, 3] }}', iterator: x, spec: {mode: parallel}}, \
                tool: {kind: noop}}\n";
    let mut run = Run::started(text);
    run.complete("a:1", json!(1));
    run.timeout("a");
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.open().is_empty());
    assert!(run.state.summary().error.unwrap().starts_with("timeout: "));
}

/// Items and results don't depend on where they are stored.
#[test]
fn a_loop_behaves_the_same_without_inline_values() {
    let items: Vec<String> = (0..600).map(|n| format!("item {n} {}", "x".repeat(100))).collect();
    let text = format!(
        "- {{step: a, loop: {{in: '{{{{ {} }}}}', iterator: x, spec: {{mode: parallel, \
         max_in_flight: 3}}}}, tool: {{kind: noop, result: '{{{{ x }}}}'}}, \
         next: {{arcs: [{{step: b}}]}}}}\n\
         - {{step: b, tool: {{kind: noop, result: '{{{{ a.results }}}}'}}}}\n",
        serde_json::to_string(&items).unwrap()
    );
    for limits in [ValueLimits::NONE, ValueLimits { value_bytes: 0, total_bytes: 0 }] {
        let mut run = Run::within(playbook(&text), limits);
        run.quick = true;
        run.input(super::harness::start()).unwrap();
        while run.open() != ["b"] {
            let (_, open) = run.state.open_commands().next().unwrap();
            let index = open.issued.item.clone().unwrap().index;
            let item = open.issued.config["result"].clone();
            assert_eq!(item, json!(items[usize::try_from(index).unwrap()]));
            run.complete(&format!("a:{index}"), item);
        }
        let (_, open) = run.state.open_commands().next().unwrap();
        assert_eq!(open.issued.config["result"], json!(items));
        run.check_invariants();
    }
}

const CURSOR: &str = "- {step: a, loop: {cursor: {kind: postgres, auth: pg, \
     claim: 'claim {{ __frame_max_rows }}'}, iterator: row, spec: {mode: cursor, \
     max_in_flight: 2, frame: {max_rows: 3, row_concurrency: 2}}}, \
     tool: {kind: noop, result: '{{ row.id }}'}}\n";

#[test]
fn a_cursor_claims_rows_until_there_are_none() {
    let mut run = Run::started(CURSOR);
    assert_eq!(run.open(), ["a", "a"], "two claims at a time");
    let (_, claim) = run.state.open_commands().next().unwrap();
    assert_eq!(claim.issued.config["query"], json!("claim 3"));
    let rows = |ids: &[i64]| {
        let rows: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"columns": ["id"], "rows": rows, "row_count": ids.len()})
    };
    run.complete("a:claim", rows(&[1, 2, 3]));
    // Two rows of the frame, and the other claim.
    assert_eq!(run.open().len(), 3);
    run.complete("a:0", json!("one"));
    run.complete("a:1", json!("two"));
    run.complete("a:claim", rows(&[]));
    run.complete("a:2", json!("three"));
    assert_eq!(run.state.status(), Status::Completed, "{:?}", run.open());
    assert_eq!(run.result("a")["results"], json!(["one", "two", "three"]));
    let types: Vec<String> = run
        .log
        .iter()
        .map(|event| noetl_model::row::EventRow::from(event).event_type)
        .map(|event_type| event_type.unwrap().into_owned())
        .filter(|name| name.starts_with("stage") || name.starts_with("frame"))
        .collect();
    assert_eq!(
        types,
        [
            "stage.opened",
            "frame.dispatched",
            "frame.dispatched",
            "frame.started",
            "frame.committed",
            "frame.committed",
            "stage.closed",
        ]
    );
}

#[test]
fn a_claim_that_fails_fails_the_loop() {
    let mut run = Run::started(CURSOR);
    run.fail("a:claim");
    assert_eq!(run.state.status(), Status::Failed);
    assert!(run.open().is_empty());
    let mut run = Run::started(CURSOR);
    run.complete("a:claim", json!("no rows at all"));
    assert_eq!(run.state.status(), Status::Failed);
}

/// Folds the log of a run into the published read model.
fn replayed(run: &Run) -> Value {
    use crate::replay::{Projection, ReplayEvent, ReplayScope, ReplayState};
    let mut state = ReplayState::new(ReplayScope {
        tenant_id: "default".to_owned(),
        organization_id: "default".to_owned(),
        execution_id: 1,
        projection: Projection::All,
    });
    for event in &run.log {
        state.apply(&ReplayEvent::from_row(&noetl_model::row::EventRow::from(event)));
    }
    serde_json::to_value(state).unwrap()
}

#[test]
fn the_read_model_shows_a_loop() {
    let spec = "{mode: sequential, policy: {failure: {mode: best_effort}}}";
    let mut run = Run::started(&looped(spec, "3"));
    run.complete("a", json!(1));
    run.fail("a");
    run.complete("a", json!(3));
    let seen = &replayed(&run)["loops"]["a:1"];
    assert_eq!(seen["step_name"], json!("a"));
    assert_eq!(seen["total"], json!(3));
    assert_eq!((&seen["done"], &seen["failed"]), (&json!(2), &json!(1)));
    assert_eq!(seen["completed"], json!(true));
}

#[test]
fn the_read_model_shows_a_cursor_as_a_stage_with_frames() {
    let mut run = Run::started(CURSOR);
    let rows = |count: usize| json!({"columns": [], "rows": vec![json!({"id": 1}); count]});
    run.complete("a:claim", rows(2));
    run.complete("a:0", json!(1));
    run.complete("a:1", json!(1));
    run.complete("a:claim", rows(0));
    while run.state.status() == Status::Running {
        run.complete("a:claim", rows(0));
    }
    let seen = replayed(&run);
    assert_eq!(seen["stages"]["a:1"]["status"], json!("CLOSED"));
    assert_eq!(seen["stages"]["a:1"]["row_count"], json!(2));
    assert_eq!(seen["stages"]["a:1"]["frame_count"], json!(1));
    assert_eq!(seen["frames"]["a:1:0"]["status"], json!("COMPLETED"));
    assert_eq!(seen["frames"]["a:1:0"]["row_count"], json!(2));
    assert_eq!(seen["frames"]["a:1:0"]["stage_id"], json!("a:1"));
    assert_eq!(seen["loops"]["a:1"]["done"], json!(2));
    assert_eq!(seen["loops"]["a:1"]["completed"], json!(true));
    assert!(seen["commands"].as_object().unwrap().len() >= 4);
}

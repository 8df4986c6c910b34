//! Names that a loop's iteration and a pipeline's task bind.

use super::*;
use crate::{Iteration, TaskScope};

#[track_caller]
fn check_in(scope: &Scope, expression: &str, expected: Value) {
    let template = format!("{{{{ {expression} }}}}");
    assert_eq!(render_in(scope, &template), expected, "{template}");
}

fn iteration(index: u32, total: Option<u32>) -> Iteration {
    Iteration {
        name: "user".into(),
        item: from_json(&json!({"id": 7})).into(),
        index,
        total,
        vars: names(json!({"page": 2})),
    }
}

fn task(iter: Value) -> TaskScope {
    TaskScope {
        label: "pull".into(),
        attempt: 2,
        previous: Some(from_json(&json!({"n": 1})).into()),
        iter: names(iter),
        duration_ms: None,
    }
}

#[test]
fn the_index_of_an_item_is_available_under_every_name() {
    let scope = Scope { iteration: Some(iteration(1, Some(3))), ..Scope::default() };
    check_in(&scope, "[user.id, iter.user.id, iter['user'].id]", json!([7, 7, 7]));
    check_in(&scope, "[_index, _total, loop_index]", json!([1, 3, 1]));
    check_in(
        &scope,
        "[iter._index, iter.index, iter._first, iter._last]",
        json!([1, 1, false, false]),
    );
    check_in(
        &scope,
        "[iter._total, iter.total, iter.first, iter.last]",
        json!([3, 3, false, false]),
    );
    check_in(
        &scope,
        "[loop.index, loop.first, loop.last, loop.length]",
        json!([1, false, false, 3]),
    );
    check_in(&scope, "[iter.page, page]", json!([2, 2]));
    check_in(&scope, "iter.nothing is defined", json!(false));
    let whole = json!({"user": {"id": 7}, "page": 2, "_index": 1, "_total": 3, "_first": false,
                       "_last": false});
    check_in(&scope, "iter", whole);
}

#[test]
fn the_last_item_is_marked_only_if_the_total_is_known() {
    let only = Scope { iteration: Some(iteration(0, Some(1))), ..Scope::default() };
    check_in(&only, "[iter._first, iter._last, loop.last]", json!([true, true, true]));
    let open = Scope { iteration: Some(iteration(4, None)), ..Scope::default() };
    check_in(&open, "[iter._first, _index]", json!([false, 4]));
    check_in(
        &open,
        "iter._last is defined or _total is defined or loop.length is defined",
        json!(false),
    );
}

#[test]
fn a_for_loop_shadows_the_loop_of_the_step() {
    let scope = Scope { iteration: Some(iteration(5, Some(9))), ..Scope::default() };
    let text = "{% for x in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }}";
    assert_eq!(render_in(&scope, text), json!("125"));
}

#[test]
fn unqualified_names_prefer_the_iteration_then_labels_then_ctx() {
    let all = json!({"user": "ctx", "pull": "ctx", "page": "ctx", "c": "ctx"});
    let scope = Scope {
        iteration: Some(iteration(0, Some(1))),
        labels: names(json!({"user": "label", "pull": "label", "page": "label"})),
        task: Some(task(json!({"page": 9}))),
        ctx: names(all),
        results: names(json!({"pull": "step", "c": "step"})),
        workload: names(json!({"_index": "mine"})),
        ..Scope::default()
    };
    check_in(&scope, "[user.id, page, pull, c]", json!([7, 9, "label", "ctx"]));
    check_in(&scope, "[ctx.user, ctx.pull, steps.pull]", json!(["ctx", "ctx", "step"]));
    check_in(&scope, "[_index, iter._index]", json!(["mine", 0]));
}

#[test]
fn a_task_sees_the_results_of_earlier_tasks() {
    let scope = Scope {
        labels: names(json!({"pull": {"x": 1}, "shape": [1, 2]})),
        task: Some(task(json!({"n": 5}))),
        ..Scope::default()
    };
    check_in(&scope, "[pull.x, pull.data.x, results.pull.x]", json!([1, 1, 1]));
    check_in(&scope, "results", json!({"pull": {"x": 1}, "shape": [1, 2]}));
    check_in(&scope, "[_task, _attempt, _prev.n, _prev.data.n]", json!(["pull", 2, 1, 1]));
    check_in(&scope, "[iter.n, n]", json!([5, 5]));
    check_in(&scope, "_index is defined", json!(false));
    for name in ["results", "_task", "_attempt", "_prev", "iter"] {
        check(&format!("{name} is defined"), json!(false));
    }
}

#[test]
fn iter_is_an_ordinary_name_outside_of_iterations() {
    let scope = scope(json!({"iter": {"x": 1}, "loop": {"index": "mine"}}));
    check_in(&scope, "[iter.x, loop.index]", json!([1, "mine"]));
}

use serde_json::json;

use super::harness::Run;
use crate::Status;

/// Returns the document of a graph. `a=>b,c` takes all arcs, `a->b|c` takes the one that the
/// completed step's data names, and `a->b` always takes its arc.
fn graph(text: &str) -> String {
    let mut steps = Vec::new();
    for line in text.split(';').map(str::trim) {
        let (from, arcs) = if let Some((from, to)) = line.split_once("=>") {
            let arcs = to.split(',').map(|to| format!("{{step: {to}}}")).collect::<Vec<_>>();
            (from, format!("{{spec: {{mode: inclusive}}, arcs: [{}]}}", arcs.join(", ")))
        } else if let Some((from, to)) = line.split_once("->") {
            let targets: Vec<&str> = to.split('|').collect();
            let arc = |to: &&str| match targets.len() {
                1 => format!("{{step: {to}}}"),
                _ => format!("{{step: {to}, when: \"output.go == '{to}'\"}}"),
            };
            let arcs = targets.iter().map(arc).collect::<Vec<_>>();
            (from, format!("{{arcs: [{}]}}", arcs.join(", ")))
        } else {
            (line, "{arcs: []}".into())
        };
        steps.push(format!("- {{step: {from}, tool: {{kind: noop}}, next: {arcs}}}"));
    }
    steps.join("\n")
}

fn run(text: &str) -> Run {
    Run::started(&graph(text))
}

fn go(run: &mut Run, step: &str, to: &str) {
    run.complete(step, json!({ "go": to }));
}

#[test]
fn a_join_runs_once_after_both_branches() {
    for order in [["a", "b"], ["b", "a"]] {
        let mut run = run("start=>a,b;a->j;b->j;j");
        go(&mut run, "start", "");
        go(&mut run, order[0], "");
        assert_eq!(run.open(), [order[1]]);
        go(&mut run, order[1], "");
        assert_eq!(run.open(), ["j"]);
        go(&mut run, "j", "");
        assert_eq!(run.state.status(), Status::Completed);
        assert_eq!(run.step_runs("j"), 1);
    }
}

#[test]
fn a_join_after_a_choice_runs_once() {
    let mut run = run("start->a|b;a->j;b->j;j");
    go(&mut run, "start", "b");
    go(&mut run, "b", "");
    assert_eq!(run.open(), ["j"]);
    assert_eq!(run.step_runs("a"), 0);
}

#[test]
fn a_join_waits_for_the_longer_branch() {
    let mut run = run("start=>a,b;a->a2;a2->a3;a3->j;b->j;j");
    for step in ["start", "b", "a", "a2"] {
        go(&mut run, step, "");
    }
    assert_eq!(run.open(), ["a3"]);
    go(&mut run, "a3", "");
    assert_eq!(run.open(), ["j"]);
}

#[test]
fn a_join_does_not_wait_for_a_branch_that_can_no_longer_reach_it() {
    let mut run = run("start=>a,b;a->j|x;b->j;x;j");
    go(&mut run, "start", "");
    go(&mut run, "b", "");
    assert_eq!(run.open(), ["a"], "a may still come");
    go(&mut run, "a", "x");
    assert_eq!(run.open(), ["j", "x"], "x cannot reach j");
}

#[test]
fn a_dead_path_of_any_length_does_not_delay_a_join() {
    let mut run = run("start=>a,b;a->p1|x;p1->p2;p2->p3;p3->p4;p4->j;b->j;x;j");
    go(&mut run, "start", "");
    go(&mut run, "b", "");
    go(&mut run, "a", "x");
    go(&mut run, "x", "");
    assert_eq!(run.open(), ["j"]);
}

#[test]
fn a_poll_loop_parallel_to_an_audit_branch_joins_once_per_page() {
    let text = "start->a;a=>b,d;b->c|j;c->b;d->j;j->a|done;done";
    for audit_first in [true, false] {
        let mut run = run(text);
        go(&mut run, "start", "");
        for page in 1..=3 {
            go(&mut run, "a", "");
            if audit_first {
                go(&mut run, "d", "");
                assert_eq!(run.open(), ["b"]);
            }
            for _ in 0..2 {
                go(&mut run, "b", "c");
                go(&mut run, "c", "");
            }
            go(&mut run, "b", "j");
            if !audit_first {
                assert_eq!(run.open(), ["d"]);
                go(&mut run, "d", "");
            }
            assert_eq!(run.open(), ["j"]);
            assert_eq!(run.step_runs("j"), page);
            go(&mut run, "j", if page == 3 { "done" } else { "a" });
        }
        go(&mut run, "done", "");
        assert_eq!(run.state.status(), Status::Completed);
    }
}

#[test]
fn parallel_retry_loops_do_not_wait_for_each_other() {
    let mut run = run("a=>b,c;b->m;m->b|j;c->n;n->c|j;j->a|done;done");
    for round in 1..=2 {
        go(&mut run, "a", "");
        go(&mut run, "b", "");
        go(&mut run, "m", "b");
        assert_eq!(run.open(), ["b", "c"], "b is tried again while c has not ended once");
        go(&mut run, "b", "");
        go(&mut run, "m", "j");
        assert_eq!(run.open(), ["c"]);
        go(&mut run, "c", "");
        go(&mut run, "n", "c");
        go(&mut run, "c", "");
        go(&mut run, "n", "j");
        assert_eq!(run.open(), ["j"]);
        assert_eq!(run.step_runs("j"), round);
        go(&mut run, "j", if round == 2 { "done" } else { "a" });
    }
}

fn joining(text: &str, join: &str) -> Run {
    let with = format!("{{step: j, join: {join}, tool: {{kind: noop}}");
    Run::started(&graph(text).replace("{step: j, tool: {kind: noop}", &with))
}

#[test]
fn join_each_runs_once_per_token() {
    let mut run = joining("start=>a,b;a->j;b->j;j", "each");
    go(&mut run, "start", "");
    go(&mut run, "a", "");
    assert_eq!(run.open(), ["b", "j"]);
    go(&mut run, "b", "");
    assert_eq!(run.open(), ["j", "j"]);
    assert_eq!(run.step_runs("j"), 2);
}

#[test]
fn join_any_runs_with_the_first_token_of_each_round() {
    let mut run = joining("s=>a,b;a->j;b->j;j->s|done;done", "any");
    for round in 1..=2 {
        go(&mut run, "s", "");
        go(&mut run, "b", "");
        assert_eq!(run.open(), ["a", "j"]);
        go(&mut run, "a", "");
        assert_eq!(run.open(), ["j"], "the second token of the round is dropped");
        assert_eq!(run.step_runs("j"), round);
        go(&mut run, "j", if round == 2 { "done" } else { "s" });
    }
    go(&mut run, "done", "");
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn join_any_at_the_head_of_a_loop_drops_the_rounds_other_tokens() {
    let mut run = joining("s=>p,q;p->j;q->j;j->b;b->j|done;done", "any");
    go(&mut run, "s", "");
    go(&mut run, "p", "");
    assert_eq!(run.open(), ["j", "q"]);
    go(&mut run, "q", "");
    assert_eq!(run.open(), ["j"]);
    go(&mut run, "j", "");
    go(&mut run, "b", "j");
    assert_eq!(run.step_runs("j"), 2, "a back arc starts it again");
    go(&mut run, "j", "");
    go(&mut run, "b", "done");
    go(&mut run, "done", "");
    assert_eq!(run.state.status(), Status::Completed);
}

//! Random graphs, random routing, random order of completion.

use noetl_model::event::ParkReason;
use noetl_model::{ExecutionId, Failure, FailureKind, Map, Seq};
use proptest::prelude::*;
use serde_json::json;

use super::harness::Run;
use crate::{
    Answer, AnswerSource, Cancel, Complete, Execution, Fail, Fork, Input, Status, Timeout, Wake,
};

/// Generates graphs: for each step, whether it takes all matching arcs, and its targets.
fn graphs(steps: usize) -> impl Strategy<Value = Vec<(bool, Vec<usize>)>> {
    let step = (any::<bool>(), prop::collection::vec(0..steps, 0..4));
    prop::collection::vec(step, steps)
}

/// Kinds of steps of a random graph. The result of a step decides which of its arcs match.
const WORK: &[&str] = &[
    "tool: {kind: noop}",
    "tool: {kind: noop}, loop: {in: [1, 2, 3], iterator: x, spec: {mode: sequential}}",
    "tool: {kind: noop}, loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel, \
     max_in_flight: 2, policy: {failure: {mode: best_effort}}}}",
    "tool: {kind: noop}, loop: {in: [], iterator: x, spec: {mode: parallel}}",
    "tool: {kind: wait, seconds: 1}",
    "tool: {kind: playbook, path: p, return_result: true}",
    "tool: {kind: playbook, path: p, return_result: true, spec: {policy: {rules: \
     [{when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 2, delay: 1}}]}}}",
    "tool: {kind: approval}, spec: {policy: {failure: {mode: best_effort}}}",
    "tool: [{name: t, kind: noop, set: {ctx.t: '{{ output }}'}}, {name: u, kind: noop}]",
    "tool: {kind: noop}, spec: {policy: {admit: {mode: wait, deadline_s: 9, rules: \
     [{when: '{{ ctx.t }}', then: {allow: false}}]}}}",
    "tool: {kind: noop}, when: '{{ not ctx.t }}'",
];

/// Returns the document of a graph. The completed step's data decides which arcs match.
fn document(graph: &[(bool, Vec<usize>)], acyclic: bool) -> String {
    document_of(graph, acyclic, &[0])
}

/// Returns the document of a graph with several kinds of steps.
fn document_of(graph: &[(bool, Vec<usize>)], acyclic: bool, work: &[u8]) -> String {
    let (mut text, is_mixed) = (String::new(), work.len() > 1);
    for (index, (inclusive, targets)) in graph.iter().enumerate() {
        let work = WORK[usize::from(work[index % work.len()]) % WORK.len()];
        let mode = if *inclusive { "inclusive" } else { "exclusive" };
        let arcs: Vec<String> = targets
            .iter()
            .filter(|&&to| !acyclic || to > index)
            .enumerate()
            .map(|(place, to)| {
                // Work that answers nothing of its own takes every other arc, for a while.
                let even = is_mixed && (index + place) % 2 == 0;
                let go = format!("output.go[{place}] or ({even} and ctx.turns < 30)");
                format!("{{step: s{to}, when: '{{{{ {go} }}}}'}}")
            })
            .collect();
        text.push_str(&format!(
            "- {{step: s{index}, {work}, \
             set: {{ctx.turns: '{{{{ ctx.turns | default(0) | int + 1 }}}}'}}, \
             next: {{spec: {{mode: {mode}}}, arcs: [{}]}}}}\n",
            arcs.join(", ")
        ));
    }
    text
}

/// Events of a run: the open command that ends next, its matching arcs, and whether it fails.
type Script = Vec<(u16, [bool; 4], bool)>;

/// Ends open commands as the script says, until nothing is open or `limit` have ended.
fn drive(run: &mut Run, script: &Script, limit: usize) {
    for step in 0..limit {
        let open = run.open();
        if open.is_empty() {
            break;
        }
        let (pick, go, fails) = script[step % script.len()];
        let chosen = open[usize::from(pick) % open.len()].clone();
        // In the second half no arc matches, so that cycles end.
        let go = if step > limit / 2 { [false; 4] } else { go };
        if fails {
            run.fail(&chosen);
        } else {
            run.complete(&chosen, json!({ "go": go }));
        }
    }
}

/// Ends whatever is open as the script says: commands of workers, waits, calls and approvals; tokens
/// that wait to be admitted last.
fn drive_all(run: &mut Run, script: &Script, limit: usize) {
    for turn in 0..limit {
        let open: Vec<_> = run.state.open_commands().map(|(id, _)| id).collect();
        let (pick, go, fails) = script[turn % script.len()];
        let go = if turn > limit / 2 { [false; 4] } else { go };
        let Some(command) = open.get(usize::from(pick) % open.len().max(1)).copied() else {
            let Some((step, tokens)) = run.state.held.iter().next() else { return };
            let (step, until) = (step.clone(), tokens[0].until);
            run.input(Input::Timeout(Timeout::Admission { step, until })).unwrap();
            continue;
        };
        let parked = run.state.open_command(command).and_then(|open| open.parked().cloned());
        let outcome = || match fails {
            true => Err(Failure::new(FailureKind::Unknown, "it broke")),
            false => Ok(json!({ "go": go })),
        };
        let answer = |from| {
            let answer = Answer { command, from, outcome: outcome(), reference: None, actor: None };
            Input::Answer(Box::new(answer))
        };
        let input = match parked {
            Some(ParkReason::Until(at) | ParkReason::Retry(at)) => {
                Input::Wake(Wake { command, at })
            }
            Some(ParkReason::Child(child)) => answer(AnswerSource::Child(child.execution)),
            Some(ParkReason::Callback(_)) => answer(AnswerSource::Trusted),
            None => match outcome() {
                Err(failure) => {
                    Input::Fail(Fail { command, failure, ctx: Map::new(), step: Map::new() })
                }
                Ok(data) => {
                    let (data, reference, is_final) = (Some(data), None, true);
                    let ctx = Map::from_iter([("t".to_owned(), json!(go[0]))]);
                    Input::Complete(Complete {
                        command,
                        data,
                        reference,
                        is_final,
                        ctx,
                        step: Map::new(),
                        run: None,
                    })
                }
            },
        };
        run.input(input.clone()).unwrap();
        if turn % 16 == 0 {
            run.check_invariants();
        }
        // Said again, it changes nothing.
        let version = run.state.version();
        let _ = run.input(input);
        assert_eq!(run.state.version(), version, "a repeat changes nothing");
    }
}

fn script(failures: bool) -> impl Strategy<Value = Script> {
    let fails = if failures { prop::bool::weighted(0.05).boxed() } else { Just(false).boxed() };
    prop::collection::vec((any::<u16>(), any::<[bool; 4]>(), fails), 1..40)
}

proptest! {
    /// Runs graphs with loops, waits, calls, approvals, pipelines, and admission.
    #[test]
    fn no_work_ever_hangs(
        graph in (2_usize..7).prop_flat_map(graphs),
        work in prop::collection::vec(any::<u8>(), 7),
        script in script(true),
    ) {
        let mut run = Run::new(super::harness::playbook(&document_of(&graph, false, &work)));
        // The whole log is replayed at some decisions only, to save time.
        run.quick = true;
        run.input(super::harness::start()).unwrap();
        drive_all(&mut run, &script, 300);
        run.check_invariants();
        prop_assert!(run.state.status().is_final(), "left {:?}", run.open());
    }

    /// A fork of any execution at any event ends, and starts no step whose values it lacks.
    #[test]
    fn no_fork_ever_hangs(
        graph in (2_usize..7).prop_flat_map(graphs),
        work in prop::collection::vec(any::<u8>(), 7),
        script in script(true),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 4),
    ) {
        let text = document_of(&graph, false, &work);
        let mut run = Run::new(super::harness::playbook(&text));
        run.quick = true;
        run.input(super::harness::start()).unwrap();
        drive_all(&mut run, &script, 60);
        for cut in cuts {
            let cut = cut.index(run.log.len() + 1) as u64;
            let mut fork = Run::new(super::harness::playbook(&text));
            fork.state = Execution::new(ExecutionId::new(2));
            fork.quick = true;
            let (cut, workload) = (Seq(cut), Map::new());
            let (log, trace, version) = (run.log.clone().into(), None, None);
            let input = Fork { log, cut, workload, trace, version, actor: None };
            fork.input(Input::Fork(Box::new(input))).unwrap();
            fork.check_invariants();
            drive_all(&mut fork, &script, 300);
            fork.check_invariants();
            prop_assert!(fork.state.status().is_final(), "cut at {cut} left {:?}", fork.open());
        }
    }

    /// After every decision, the harness checks that replaying the log gives the current state,
    /// that the log has no gap, that it ends at most once, and that an open execution has
    /// outstanding work. The engine asserts that waiting steps never block each other.
    #[test]
    fn no_graph_ever_hangs(graph in (2_usize..9).prop_flat_map(graphs), script in script(true)) {
        let mut run = Run::started(&document(&graph, false));
        drive(&mut run, &script, 400);
        prop_assert!(run.state.status().is_final(), "left {:?}", run.open());
    }

    #[test]
    fn without_cycles_every_step_runs_at_most_once(
        graph in (2_usize..9).prop_flat_map(graphs),
        script in script(false),
    ) {
        let mut run = Run::started(&document(&graph, true));
        drive(&mut run, &script, 60);
        prop_assert_eq!(run.state.status(), Status::Completed);
        for step in 0..graph.len() {
            prop_assert!(run.step_runs(&format!("s{step}")) <= 1, "s{step}");
        }
    }

    #[test]
    fn a_cancel_at_any_point_ends_the_execution_at_once(
        graph in (2_usize..9).prop_flat_map(graphs),
        script in script(false),
        after in 0_usize..20,
    ) {
        let mut run = Run::started(&document(&graph, false));
        drive(&mut run, &script, after);
        let ended = run.state.status().is_final();
        let cancelled = run.input(Input::Cancel(Cancel::default()));
        prop_assert_eq!(cancelled.is_err(), ended);
        prop_assert!(run.state.status().is_final());
        prop_assert!(run.open().is_empty());
    }
}

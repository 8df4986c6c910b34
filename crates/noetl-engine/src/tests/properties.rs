//! Random graphs, random routing, random order of completion.

use proptest::prelude::*;
use serde_json::json;

use super::harness::Run;
use crate::{Cancel, Input, Status};

/// For each step of a random graph: whether it takes all matching arcs, and its targets.
fn graphs(steps: usize) -> impl Strategy<Value = Vec<(bool, Vec<usize>)>> {
    let step = (any::<bool>(), prop::collection::vec(0..steps, 0..4));
    prop::collection::vec(step, steps)
}

/// The graph as a document. Which arcs match is told by the completed step's data.
fn document(graph: &[(bool, Vec<usize>)], acyclic: bool) -> String {
    let mut text = String::new();
    for (index, (inclusive, targets)) in graph.iter().enumerate() {
        let mode = if *inclusive { "inclusive" } else { "exclusive" };
        let arcs: Vec<String> = targets
            .iter()
            .filter(|&&to| !acyclic || to > index)
            .enumerate()
            .map(|(place, to)| format!("{{step: s{to}, when: 'output.go[{place}]'}}"))
            .collect();
        text.push_str(&format!(
            "- {{step: s{index}, tool: {{kind: noop}}, \
             next: {{spec: {{mode: {mode}}}, arcs: [{}]}}}}\n",
            arcs.join(", ")
        ));
    }
    text
}

/// Which open command ends next, which of its arcs match, and whether it fails.
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

fn script(failures: bool) -> impl Strategy<Value = Script> {
    let fails = if failures { prop::bool::weighted(0.05).boxed() } else { Just(false).boxed() };
    prop::collection::vec((any::<u16>(), any::<[bool; 4]>(), fails), 1..40)
}

proptest! {
    /// The harness checks after every decision that replay equals life, that the log has no gap,
    /// that it ends once and that something is outstanding unless it has; the engine asserts that
    /// waiting steps never hold each other up.
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
            prop_assert!(run.visits(&format!("s{step}")) <= 1, "s{step}");
        }
    }

    #[test]
    fn cancel_ends_at_once_whenever_it_comes(
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

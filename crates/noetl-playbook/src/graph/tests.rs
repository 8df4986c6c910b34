use super::{Graph, GraphError};
use crate::StepIx;

/// Builds a graph from text such as `a>b,c; b>j`. The first step is the entry.
fn graph(text: &str) -> (Graph, impl Fn(&str) -> StepIx) {
    let mut names: Vec<String> = Vec::new();
    let mut place = |name: &str| {
        names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
    };
    let mut arcs: Vec<(usize, usize)> = Vec::new();
    for line in text.split(';') {
        let (from, to) = line.trim().split_once('>').unwrap();
        let from = place(from);
        arcs.extend(to.split(',').map(|to| (from, place(to))));
    }
    let mut targets = vec![Vec::new(); names.len()];
    for (from, to) in arcs {
        targets[from].push(StepIx(u32::try_from(to).unwrap()));
    }
    let graph = Graph::new(&targets, StepIx(0)).unwrap();
    let find = move |name: &str| {
        let at = names.iter().position(|known| known == name).unwrap();
        StepIx(u32::try_from(at).unwrap())
    };
    (graph, find)
}

#[test]
fn the_join_of_a_diamond_waits_for_both_branches_and_has_no_back_arc() {
    let (graph, step) = graph("a>b,c;b>j;c>j");
    assert!(graph.is_join(step("j")));
    for name in ["a", "b", "c"] {
        assert!(graph.may_reach(step(name), step("j")), "{name}");
    }
    assert!(!graph.may_reach(step("j"), step("j")));
    assert!(!graph.is_back_arc(step("b"), 0));
}

#[test]
fn the_arc_that_returns_to_a_loops_first_step_is_its_back_arc() {
    let (graph, step) = graph("s>a;a>b;b>a,e");
    assert!(graph.is_back_arc(step("b"), 0));
    assert!(!graph.is_back_arc(step("b"), 1));
    assert_eq!(graph.round_header(step("b")), Some(step("a")));
    assert_eq!(graph.round_header(step("a")), None);
    assert_eq!(graph.round_header(step("e")), None);
    // The first step of the loop does not wait for its own next round.
    assert!(!graph.may_reach(step("b"), step("a")));
    assert!(graph.may_reach(step("s"), step("a")));
}

#[test]
fn a_self_arc_is_a_loop_of_one() {
    let (graph, step) = graph("a>a,b");
    assert!(graph.is_back_arc(step("a"), 0));
    assert_eq!(graph.round_header(step("a")), None);
}

#[test]
fn a_join_parallel_to_a_poll_loop_waits_for_the_loop() {
    let (graph, step) = graph("start>a;a>b,d;b>c,j;c>b;d>j;j>a,done");
    assert!(graph.is_back_arc(step("c"), 0), "c polls again");
    assert!(graph.is_back_arc(step("j"), 0), "j opens the next page");
    for name in ["b", "c", "d"] {
        assert!(graph.may_reach(step(name), step("j")), "{name}");
    }
    // b is entered by a, and by c's back arc which fires at once; nothing else holds it up.
    assert!(!graph.may_reach(step("d"), step("b")));
}

#[test]
fn parallel_retry_loops_do_not_wait_for_each_other() {
    let (graph, step) = graph("a>b,c;b>m;m>b,j;c>n;n>c,j;j>a,done");
    assert!(!graph.may_reach(step("c"), step("b")));
    assert!(!graph.may_reach(step("n"), step("b")));
    assert!(!graph.may_reach(step("m"), step("c")));
    assert!(graph.may_reach(step("m"), step("j")));
    assert!(graph.may_reach(step("n"), step("j")));
}

#[test]
fn a_long_chain_does_not_overflow_the_stack() {
    let steps = 200_000_u32;
    let arcs: Vec<Vec<StepIx>> =
        (0..steps).map(|ix| if ix + 1 < steps { vec![StepIx(ix + 1)] } else { vec![] }).collect();
    let graph = Graph::new(&arcs, StepIx(0)).unwrap();
    assert!(!graph.is_join(StepIx(steps - 1)));
}

#[test]
fn loops_nested_too_deeply_are_rejected() {
    // Step i+1 leads back to step i: each level has its own header.
    let steps = 200_u32;
    let arcs: Vec<Vec<StepIx>> = (0..steps)
        .map(|ix| {
            let next = (ix + 1 < steps).then_some(StepIx(ix + 1));
            next.into_iter().chain((ix > 0).then(|| StepIx(ix - 1))).collect()
        })
        .collect();
    assert_eq!(Graph::new(&arcs, StepIx(0)).unwrap_err(), GraphError::TooDeep);
}

#[test]
fn many_small_loops_are_analyzed_in_linear_time() {
    // 50 000 two-step loops in a row: a pass over all steps for each would take minutes.
    let steps = 100_000_u32;
    let arcs: Vec<Vec<StepIx>> = (0..steps)
        .map(|ix| {
            let next = (ix + 1 < steps).then_some(StepIx(ix + 1));
            next.into_iter().chain((ix % 2 == 1).then(|| StepIx(ix - 1))).collect()
        })
        .collect();
    let graph = Graph::new(&arcs, StepIx(0));
    // Every loop's first step is a join, so the pairs exceed what is worked out.
    assert_eq!(graph.unwrap_err(), GraphError::TooManyJoins { joins: 49_999, steps: 100_000 });
}

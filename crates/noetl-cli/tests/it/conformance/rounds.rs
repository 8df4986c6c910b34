//! C61: joins within loops, for every order in which the work can end.
//!
//! Every step with work is an approval, so that the test decides what ends next. It tries one
//! order after the other until there is none left.

use noetl_model::ExecutionId;
use serde_json::json;

use super::stage::{Ended, Stage};

/// What is chosen at each point where there is a choice, and out of how many.
#[derive(Default)]
struct Orders {
    chosen: Vec<(usize, usize)>,
    depth: usize,
}

impl Orders {
    fn choose(&mut self, among: usize) -> usize {
        if self.depth == self.chosen.len() {
            self.chosen.push((0, among));
        }
        let (choice, of) = self.chosen[self.depth];
        assert_eq!(of, among, "the same answers lead to the same questions");
        self.depth += 1;
        choice
    }

    /// Goes on to the next order, if there is one.
    fn next(&mut self) -> bool {
        self.depth = 0;
        while let Some((choice, among)) = self.chosen.pop() {
            if choice + 1 < among {
                self.chosen.push((choice + 1, among));
                return true;
            }
        }
        false
    }
}

/// Answers whatever waits until the execution is over; `again` says of a step's visit whether it
/// goes round once more. Only the first `rounds` entries of `j` leave a choice of order.
async fn play(
    stage: &Stage,
    orders: &mut Orders,
    rounds: usize,
    again: impl Fn(&str, usize) -> bool,
    mut seen: impl FnMut(&str, bool, &[String]),
) -> Ended {
    let id: ExecutionId = stage.start_path("t", noetl_model::Map::new()).await;
    let mut visits: Vec<String> = Vec::new();
    loop {
        let asked = stage.asked(id).await;
        if asked.is_empty() {
            return stage.ended(id).await;
        }
        let is_free = visits.iter().filter(|step| *step == "j").count() < rounds;
        let choice = if asked.len() > 1 && is_free { orders.choose(asked.len()) } else { 0 };
        let step = asked[choice].0.to_string();
        let visit = visits.iter().filter(|before| **before == step).count() + 1;
        let goes_again = again(&step, visit);
        visits.push(step.clone());
        stage.answer(id, &asked[choice], json!({ "again": goes_again })).await;
        let open: Vec<String> =
            stage.asked(id).await.iter().map(|(step, _, _)| step.to_string()).collect();
        seen(&step, goes_again, &open);
    }
}

fn approval(step: &str, arcs: &str) -> String {
    format!("  - {{step: {step}, tool: {{kind: approval}}, next: {{arcs: [{arcs}]}}}}\n")
}

fn split(step: &str, left: &str, right: &str) -> String {
    format!(
        "  - {{step: {step}, next: {{spec: {{mode: inclusive}}, arcs: [{{step: {left}}}, {{step: {right}}}]}}}}\n"
    )
}

fn or(first: &str, other: &str) -> String {
    format!("{{step: {first}, when: '{{{{ output.again }}}}'}}, {{step: {other}}}")
}

#[tokio::test]
async fn c61_a_poll_loop_joins_a_parallel_audit_once_per_page() {
    let steps = [
        "  - {step: start, next: {arcs: [{step: a}]}}\n".to_owned(),
        split("a", "b", "d"),
        approval("b", &or("c", "j")),
        approval("c", "{step: b}"),
        approval("d", "{step: j}"),
        approval("j", &or("a", "done")),
        "  - {step: done, tool: {kind: noop}}\n".to_owned(),
    ];
    let stage = Stage::open().await;
    stage.register("t", &steps.concat()).await;
    let mut orders = Orders::default();
    let mut tried = 0;
    loop {
        // Each page is polled twice: `b` goes on to `c` at its odd visits.
        let again = |step: &str, visit: usize| match step {
            "b" => visit % 2 == 1,
            "j" => visit == 1,
            _ => false,
        };
        let ended = play(&stage, &mut orders, 2, again, |_, _, _| {}).await.well();
        let counts = ["a", "b", "c", "d", "j", "done"].map(|step| ended.runs(step));
        assert_eq!(counts, [2, 4, 2, 2, 2, 1], "{}", ended.entered());
        tried += 1;
        if !orders.next() {
            break;
        }
    }
    assert_eq!(tried, 16, "one of four moments for d on each of two pages");
    stage.close().await;
}

#[tokio::test]
async fn c61_two_retry_loops_do_not_wait_for_each_other() {
    let steps = [
        split("a", "b", "c"),
        approval("b", "{step: m}"),
        approval("m", &or("b", "j")),
        approval("c", "{step: n}"),
        approval("n", &or("c", "j")),
        approval("j", &or("a", "done")),
        "  - {step: done, tool: {kind: noop}}\n".to_owned(),
    ];
    let stage = Stage::open().await;
    stage.register("t", &steps.concat()).await;
    let mut orders = Orders::default();
    let mut tried = 0;
    loop {
        // In the first round both sides retry once, in the second neither does.
        let again = |step: &str, visit: usize| matches!(step, "m" | "n" | "j") && visit == 1;
        let ended = play(&stage, &mut orders, 1, again, |step, goes_again, open| {
            let back = match step {
                "m" => "b",
                "n" => "c",
                _ => return,
            };
            assert!(!goes_again || open.iter().any(|step| step == back), "{back} waits: {open:?}");
        })
        .await
        .well();
        let counts = ["a", "b", "m", "c", "n", "j", "done"].map(|step| ended.runs(step));
        assert_eq!(counts, [2, 3, 3, 3, 3, 2, 1], "{}", ended.entered());
        tried += 1;
        if !orders.next() {
            break;
        }
    }
    assert_eq!(tried, 70, "all orders of four ends on either side");
    stage.close().await;
}

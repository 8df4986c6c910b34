//! C61: joins within loops, for every order in which the work can end.
//!
//! Every step with work is an approval, so that the test decides what ends next. It tries one
//! order after the other until there is none left.

use noetl_model::ExecutionId;
use serde_json::json;

use super::plane::{FinishedRun, TestPlane};

/// Choices made at each point where several answers are possible, and the number of options.
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

    /// Advances to the next order. Returns `false` after the last one.
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

/// Answers pending approvals until the execution ends. `again` decides for each step run whether it
/// repeats. Only the first `rounds` runs of `j` leave a choice of order.
async fn play(
    plane: &TestPlane,
    orders: &mut Orders,
    rounds: usize,
    again: impl Fn(&str, usize) -> bool,
    mut seen: impl FnMut(&str, bool, &[String]),
) -> FinishedRun {
    let id: ExecutionId = plane.start_path("t", noetl_model::Map::new()).await;
    let mut visits: Vec<String> = Vec::new();
    loop {
        let asked = plane.asked(id).await;
        if asked.is_empty() {
            return plane.ended(id).await;
        }
        let is_free = visits.iter().filter(|step| *step == "j").count() < rounds;
        let choice = if asked.len() > 1 && is_free { orders.choose(asked.len()) } else { 0 };
        let step = asked[choice].0.to_string();
        let run = visits.iter().filter(|before| **before == step).count() + 1;
        let goes_again = again(&step, run);
        visits.push(step.clone());
        plane.answer(id, &asked[choice], json!({ "again": goes_again })).await;
        let open: Vec<String> =
            plane.asked(id).await.iter().map(|(step, _, _)| step.to_string()).collect();
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
    let plane = TestPlane::open().await;
    plane.register("t", &steps.concat()).await;
    let mut orders = Orders::default();
    let mut tried = 0;
    loop {
        // Each page is polled twice: `b` continues to `c` in its odd runs.
        let again = |step: &str, run: usize| match step {
            "b" => run % 2 == 1,
            "j" => run == 1,
            _ => false,
        };
        let ended = play(&plane, &mut orders, 2, again, |_, _, _| {}).await.expect_completed();
        let counts = ["a", "b", "c", "d", "j", "done"].map(|step| ended.runs(step));
        assert_eq!(counts, [2, 4, 2, 2, 2, 1], "{}", ended.entered());
        tried += 1;
        if !orders.next() {
            break;
        }
    }
    assert_eq!(tried, 16, "one of four moments for d on each of two pages");
    plane.close().await;
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
    let plane = TestPlane::open().await;
    plane.register("t", &steps.concat()).await;
    let mut orders = Orders::default();
    let mut tried = 0;
    loop {
        // In the first round both sides retry once, in the second neither does.
        let again = |step: &str, run: usize| matches!(step, "m" | "n" | "j") && run == 1;
        let ended = play(&plane, &mut orders, 1, again, |step, goes_again, open| {
            let back = match step {
                "m" => "b",
                "n" => "c",
                _ => return,
            };
            assert!(!goes_again || open.iter().any(|step| step == back), "{back} waits: {open:?}");
        })
        .await
        .expect_completed();
        let counts = ["a", "b", "m", "c", "n", "j", "done"].map(|step| ended.runs(step));
        assert_eq!(counts, [2, 3, 3, 3, 3, 2, 1], "{}", ended.entered());
        tried += 1;
        if !orders.next() {
            break;
        }
    }
    assert_eq!(tried, 70, "all orders of four ends on either side");
    plane.close().await;
}

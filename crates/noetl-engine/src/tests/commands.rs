use super::harness::check;

const ONE: &str = "- {step: a, tool: {kind: noop}}";
const TWO: &str = "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}}";
/// Decision of `start` in both playbooks.
const BEGUN: &str = "\
start
  playbook_started
  step.enter a #1
  command.issued a attempt 1
";

#[track_caller]
fn after_start(workflow: &str, script: &str, expected: &str) {
    check(workflow, &format!("start; {script}"), &format!("{BEGUN}{expected}"));
}

#[test]
fn two_workers_never_claim_one_command() {
    after_start(
        ONE,
        "claim a w1; claim a w1; claim a w2",
        "\
claim a w1
  command.claimed a by w1
claim a w1
  nothing
claim a w2
  refused: the command was claimed by w1
",
    );
}

#[test]
fn a_duplicate_report_is_ignored() {
    after_start(
        TWO,
        "claim a w; complete a 1; late complete a 2; late fail a; late begin a w; late claim a w",
        "\
claim a w
  command.claimed a by w
complete a 1
  call.done a 1
  command.completed a
  step.exit a done -> b
  step.enter b #1
  command.issued b attempt 1
late complete a 2
  nothing
late fail a
  nothing
late begin a w
  nothing
late claim a w
  refused: the command is over
",
    );
}

#[test]
fn a_worker_can_report_the_result_before_the_completion() {
    after_start(
        ONE,
        "claim a w; begin a w; begin a w; answer a {\"x\":1}; complete a",
        "\
claim a w
  command.claimed a by w
begin a w
  command.started a by w
begin a w
  nothing
answer a {\"x\":1}
  call.done a {\"x\":1}
complete a
  command.completed a
  step.exit a done -> nowhere
  playbook.completed {\"x\":1}
",
    );
}

#[test]
fn an_expired_lease_closes_the_command_and_issues_another() {
    after_start(
        ONE,
        "claim a w; expire a; late complete a 1; claim a w2; complete a 2",
        "\
claim a w
  command.claimed a by w
expire a
  command.expired a gone
  command.issued a attempt 2
late complete a 1
  nothing
claim a w2
  command.claimed a by w2
complete a 2
  call.done a 2
  command.completed a
  step.exit a done -> nowhere
  playbook.completed 2
",
    );
}

#[test]
fn an_unclaimed_command_has_no_lease_to_expire() {
    after_start(ONE, "expire a", "expire a\n  nothing\n");
}

#[test]
fn a_step_that_loses_its_worker_too_often_fails() {
    after_start(
        ONE,
        "claim a w; expire a; claim a w; expire a; claim a w; expire a",
        "\
claim a w
  command.claimed a by w
expire a
  command.expired a gone
  command.issued a attempt 2
claim a w
  command.claimed a by w
expire a
  command.expired a gone
  command.issued a attempt 3
claim a w
  command.claimed a by w
expire a
  command.expired a gone
  step.exit a failed: worker_lost: lost its worker 3 times: gone -> nowhere
  playbook.failed at a worker_lost: lost its worker 3 times: gone
",
    );
}

#[test]
fn unstarted_commands_are_reissued_without_a_limit() {
    const ONCE: &str = "- {step: a, tool: {kind: noop, idempotent: false}}";
    let transcript = "claim a w; return a; ".repeat(4) + "claim a w; expire a";
    let mut expected = String::new();
    for attempt in 2..=5 {
        expected.push_str(&format!(
            "claim a w\n  command.claimed a by w\nreturn a\n  command.expired a gone\n  \
             command.issued a attempt {attempt}\n"
        ));
    }
    let why = "worker_lost: lost its worker, and its tool may not run twice: gone";
    expected.push_str(&format!(
        "claim a w\n  command.claimed a by w\nexpire a\n  command.expired a gone\n  \
         step.exit a failed: {why} -> nowhere\n  playbook.failed at a {why}\n"
    ));
    after_start(ONCE, &transcript, &expected);
}

#[test]
fn a_result_reported_before_the_lease_expired_decides_the_step() {
    after_start(
        TWO,
        "claim a w; answer a 7; expire a",
        "\
claim a w
  command.claimed a by w
answer a 7
  call.done a 7
expire a
  command.completed a
  step.exit a done -> b
  step.enter b #1
  command.issued b attempt 1
",
    );
}

#[test]
fn a_late_result_after_cancel_is_ignored() {
    after_start(
        TWO,
        "claim a w; cancel; late complete a 1; cancel; late claim a w; late expire a",
        "\
claim a w
  command.claimed a by w
cancel
  command.cancelled a
  playbook_cancelled
late complete a 1
  nothing
cancel
  refused: the execution is Cancelled already
late claim a w
  refused: the execution is Cancelled already
late expire a
  refused: the execution is Cancelled already
",
    );
}

#[test]
fn an_execution_starts_once() {
    after_start(ONE, "start", "start\n  refused: the execution began before\n");
}

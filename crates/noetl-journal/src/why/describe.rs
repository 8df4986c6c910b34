//! Describes pending waits in sentences.

use std::sync::Arc;

use noetl_engine::{PendingWait, WaitKind};
use noetl_identity as identity;
use noetl_model::command::is_remote_worker;
use noetl_model::parked::CONTROL_PLANE;
use noetl_model::{DEFAULT_POOL, ExecutionId, Timestamp};
use noetl_store::ExecutionStatus;

use super::{Around, Registered, Wait};

/// Names of the default pool: this control plane's, and the one that published workers register by
/// default.
const UNNAMED: [&str; 2] = [DEFAULT_POOL, "default"];

pub(super) fn describe_wait(outstanding: PendingWait, around: &Around) -> Wait {
    let pool = around.pool.clone();
    let pool_name = pool.as_deref().unwrap_or(DEFAULT_POOL).to_owned();
    let step = match outstanding.item {
        Some(item) => format!("item {item} of step '{}'", outstanding.step),
        None => format!("step '{}'", outstanding.step),
    };
    let (mut pool, mut workers, mut lease_until, mut child) = (None, Vec::new(), None, None);
    let (what, would_move_it) = match &outstanding.awaited {
        WaitKind::Worker { tool, attempt } => {
            pool = Some(Arc::from(pool_name.as_str()));
            let lacking = outstanding.command.and_then(|command| around.lacking.get(&command));
            workers = able(around, &pool_name, tool, lacking.is_some());
            let tries = if *attempt > 1 { format!(" for try {attempt}") } else { String::new() };
            let what = format!(
                "{step} waits for a worker of pool '{pool_name}' with tool '{tool}'{tries}"
            );
            let lacking = lacking.filter(|_| !around.has_worker);
            let lacking = lacking.map(|why| format!("; it is not announced, since {why}"));
            let who = who_could_take_it(around, &pool_name, tool, &workers);
            (what, who + &lacking.unwrap_or_default())
        }
        WaitKind::Report { worker, began, stopping } => {
            let held = outstanding.command.and_then(|command| around.held.get(&command));
            lease_until = held.copied().or_else(|| identity::lease_of(worker, &around.live));
            let does = if *began { "runs it" } else { "took it" };
            let what = match stopping {
                true => {
                    format!("{step}: the execution fails, and worker '{worker}' is told to stop")
                }
                false => format!("{step}: worker '{worker}' {does} and has not said how it ended"),
            };
            let once = outstanding.command.is_some_and(|command| around.once.contains(&command));
            let limit = outstanding.command.and_then(|command| around.limited.get(&command));
            let limit = limit.filter(|_| !*stopping).map(|(at_most, cause)| {
                format!("; that happens at {at_most} at the latest, because {cause} and the report may be lost")
            });
            (what, who_ends_it(worker, lease_until, *stopping, once) + &limit.unwrap_or_default())
        }
        WaitKind::Time { until, retries: false } => {
            (format!("{step} waits until {until}"), "the time comes by itself".to_owned())
        }
        WaitKind::Time { until, retries: true } => (
            format!("{step} pauses until {until} before its next try"),
            "the time comes by itself".to_owned(),
        ),
        WaitKind::Child { execution, until } => {
            child = around.children.get(execution).copied();
            let stands = child.map_or("not started yet", ExecutionStatus::as_str);
            let limit = until.map(|until| format!(", at most until {until}")).unwrap_or_default();
            (
                format!("{step} waits for execution {execution}, which is {stands}{limit}"),
                format!(
                    "the end of execution {execution}; GET /api/executions/{execution}/why tells \
                     what that waits for"
                ),
            )
        }
        WaitKind::Answer { until } => (
            format!("{step} waits for an answer until {until}"),
            how_to_answer(around.execution, &outstanding),
        ),
        WaitKind::Admission { until } => (
            format!("{step} lets a token wait to be admitted until {until}"),
            "a change of the variables its admission rules read; after that time it is refused"
                .to_owned(),
        ),
        WaitKind::Arcs { arrived } => (
            format!("{step} waits for other arcs; here are those of {}", arrived.join(", ")),
            "the end of other running steps that can still lead to this one".to_owned(),
        ),
        WaitKind::Items { total, ended, open, claims } => {
            let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
            let claims = match claims {
                0 => String::new(),
                more => format!(", and {more} claims of rows are in flight"),
            };
            (
                format!("{step} loops: {ended}{of} items have ended, {open} are running{claims}"),
                "the end of the running items, which are listed separately".to_owned(),
            )
        }
    };
    Wait { outstanding, what, would_move_it, pool, workers, lease_until, child }
}

/// Returns the workers that can claim a command: of its pool, and with its tool.
///
/// A worker that names no pool accepts commands of the default pool, and of a pool with its own
/// name. A worker that names no tools is a published one, and can't run a command that requires
/// more than those support.
fn able(around: &Around, pool: &str, tool: &str, is_lacking: bool) -> Vec<String> {
    let is_of_pool = |worker: &Registered| match worker.pool.as_deref() {
        Some(own) => own == pool || (UNNAMED.contains(&own) && UNNAMED.contains(&pool)),
        None => pool == DEFAULT_POOL || worker.name == pool,
    };
    let has_tool = |worker: &Registered| match &worker.tools {
        Some(tools) => tools.iter().any(|own| own == tool),
        None => !is_lacking,
    };
    let able = around.workers.iter().filter(|worker| is_of_pool(worker) && has_tool(worker));
    able.map(|worker| worker.name.clone()).collect()
}

fn who_could_take_it(around: &Around, pool: &str, tool: &str, workers: &[String]) -> String {
    match (around.has_worker, workers) {
        (true, _) => {
            "a free slot of the worker in this process; older commands go first".to_owned()
        }
        (false, []) => {
            format!(
                "no worker of pool '{pool}' with tool '{tool}' is registered: start one, or the \
                 command stays"
            )
        }
        (false, workers) => format!("one of these takes it: {}", workers.join(", ")),
    }
}

fn who_ends_it(worker: &str, lease_until: Option<Timestamp>, stopping: bool, once: bool) -> String {
    if worker == CONTROL_PLANE {
        return "the control plane itself, with what it does for the step".to_owned();
    }
    if stopping {
        return "its report, or the end of the 30 s that the control plane waits for a report"
            .to_owned();
    }
    let then = match once {
        true => "the step fails, since its tool may not run twice",
        false => "the command is handed out again",
    };
    match lease_until {
        Some(until) if is_remote_worker(worker) => {
            format!("its report; if its lease expires at {until}, {then}")
        }
        Some(until) => format!("its report; if its process is gone at {until}, {then}"),
        // The lease has expired, and the lease reaper has not processed it.
        None if is_remote_worker(worker) => {
            format!("its report; its lease has expired, so unless a report arrives, {then}")
        }
        None => format!("its report; after a restart of its process, {then}"),
    }
}

fn how_to_answer(execution: Option<ExecutionId>, outstanding: &PendingWait) -> String {
    let (execution, command) = match (execution, outstanding.command) {
        (Some(execution), Some(command)) => (execution.to_string(), command.to_string()),
        _ => ("{id}".to_owned(), "{command}".to_owned()),
    };
    format!(
        "POST /api/executions/{execution}/answers/{command} with {{\"token\": …, \"data\": …}}; the \
         token is in the command.parked event of the step"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use noetl_model::CommandId;
    use noetl_store::Lease;

    use super::*;
    use crate::local::LOCAL_WORKER;
    use noetl_identity::LEASES;

    fn one(awaited: WaitKind) -> PendingWait {
        PendingWait { step: Arc::from("a"), command: None, item: None, since: None, awaited }
    }

    fn around() -> Around {
        let worker = |name: &str, pool: Option<&str>| Registered {
            name: name.to_owned(),
            pool: pool.map(str::to_owned),
            tools: None,
        };
        let workers = vec![
            worker("not-gpu", Some("cpu")),
            worker("box-7", Some("gpu")),
            worker("plain", None),
            worker("published", Some("default")),
        ];
        Around { workers, ..Around::default() }
    }

    fn waits_for_worker(around: &Around) -> Wait {
        describe_wait(one(WaitKind::Worker { tool: Arc::from("shell"), attempt: 1 }), around)
    }

    #[test]
    fn an_unclaimed_command_names_the_missing_worker() {
        let wait = waits_for_worker(&Around::default());
        assert_eq!(wait.what, "step 'a' waits for a worker of pool 'shared' with tool 'shell'");
        assert!(wait.would_move_it.starts_with("no worker of pool 'shared' with tool 'shell'"));
        let gpu = Around { pool: Some(Arc::from("gpu")), ..around() };
        assert_eq!(waits_for_worker(&gpu).workers, ["box-7"], "by what it says, not by its name");
        assert_eq!(waits_for_worker(&around()).workers, ["plain", "published"]);
        let other = Around { pool: Some(Arc::from("tpu")), ..around() };
        assert!(waits_for_worker(&other).would_move_it.starts_with("no worker of pool 'tpu'"));
        let own = Around { has_worker: true, ..Around::default() };
        assert!(waits_for_worker(&own).would_move_it.starts_with("a free slot"));
    }

    #[test]
    fn a_worker_that_cannot_take_a_command_is_not_named() {
        let mut around = around();
        let with = |name: &str, tools: &[&str]| Registered {
            name: name.to_owned(),
            pool: None,
            tools: Some(tools.iter().map(ToString::to_string).collect()),
        };
        around.workers.extend([with("no-shell", &["http"]), with("shell", &["http", "shell"])]);
        assert_eq!(waits_for_worker(&around).workers, ["plain", "published", "shell"]);
        let command = CommandId::new(5);
        around.lacking.insert(command, "published workers lack it".to_owned());
        let awaited = WaitKind::Worker { tool: Arc::from("shell"), attempt: 1 };
        let wait = describe_wait(PendingWait { command: Some(command), ..one(awaited) }, &around);
        assert_eq!(wait.workers, ["shell"], "published workers can't take it");
        around.workers.retain(|worker| worker.name == "no-shell");
        let said = waits_for_worker(&around).would_move_it;
        assert!(said.starts_with("no worker of pool 'shared' with tool 'shell'"), "{said}");
    }

    #[test]
    fn a_worker_in_a_process_is_known_by_its_lease() {
        let until = Timestamp::from_micros(7);
        let lease = Lease { name: format!("{LEASES}3"), holder: "h".to_owned(), epoch: 2, until };
        let around = Around { live: vec![lease], ..Around::default() };
        let worker: Arc<str> = Arc::from(format!("{LOCAL_WORKER}:{LEASES}3:2").as_str());
        let report = WaitKind::Report { worker, began: true, stopping: false };
        assert_eq!(describe_wait(one(report), &around).lease_until, Some(until));
        let worker = Arc::from("far-away");
        let report = WaitKind::Report { worker, began: false, stopping: true };
        let wait = describe_wait(one(report), &around);
        assert_eq!(wait.lease_until, None);
        assert!(wait.what.contains("told to stop"), "{}", wait.what);
        assert_eq!(
            wait.would_move_it,
            "its report, or the end of the 30 s that the control plane waits for a report"
        );
    }

    #[test]
    fn a_remote_worker_is_described_with_the_lease_of_its_command() {
        let until = Timestamp::from_micros(7);
        let (mine, other) = (CommandId::new(5), CommandId::new(6));
        let around = Around { held: HashMap::from([(mine, until)]), ..Around::default() };
        let wait = |command| {
            let worker = Arc::from("far-away");
            let report = WaitKind::Report { worker, began: true, stopping: false };
            describe_wait(PendingWait { command: Some(command), ..one(report) }, &around)
        };
        assert_eq!(wait(mine).lease_until, Some(until));
        let heard = format!("if its lease expires at {until}");
        assert!(wait(mine).would_move_it.contains(&heard), "{}", wait(mine).would_move_it);
        assert_eq!(wait(other).lease_until, None);
        let said = wait(other).would_move_it;
        assert!(said.ends_with("the command is handed out again"), "{said}");
        let around = Around { once: HashSet::from([mine]), ..Around::default() };
        let worker = Arc::from("far-away");
        let report = WaitKind::Report { worker, began: true, stopping: false };
        let said = describe_wait(PendingWait { command: Some(mine), ..one(report) }, &around);
        let said = said.would_move_it;
        assert!(said.ends_with("the step fails, since its tool may not run twice"), "{said}");
    }

    #[test]
    fn a_child_is_named_with_how_it_stands() {
        let execution = ExecutionId::new(9);
        let child = || one(WaitKind::Child { execution, until: None });
        let wait = describe_wait(child(), &Around::default());
        assert_eq!(wait.what, "step 'a' waits for execution 9, which is not started yet");
        let children = HashMap::from([(execution, ExecutionStatus::Running)]);
        let wait = describe_wait(child(), &Around { children, ..Around::default() });
        assert_eq!(wait.child, Some(ExecutionStatus::Running));
    }
}

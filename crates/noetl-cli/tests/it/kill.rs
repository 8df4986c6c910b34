//! Kills the process at random moments and checks the log afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use noetl_api::catalog::RegisterRequest;
use noetl_api::execute::ExecuteRequest;
use noetl_api::{Client, events::EventView};
use noetl_model::ExecutionId;

use crate::dev_process::DevProcess;

/// Steps of each execution.
const STEPS: usize = 1000;

/// Number of concurrent executions.
const LANES: usize = 3;

/// Default number of kills; `NOETL_KILLS` overrides it.
const KILLS: u32 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn executions_finish_exactly_once_when_servers_are_killed_at_random_moments() {
    let seed = seed();
    let mut random = seed;
    let data = tempfile::tempdir().unwrap();
    let mut unfinished: Vec<ExecutionId> = Vec::new();
    let mut finished: Vec<ExecutionId> = Vec::new();
    let mut process = DevProcess::start(data.path());
    register(&process.client).await;
    for kill in 1..=kills() {
        while unfinished.len() < LANES {
            unfinished.push(execute(&process.client).await);
        }
        tokio::time::sleep(Duration::from_micros(next(&mut random) % 300_000)).await;
        process.kill();
        process = DevProcess::start(data.path());
        let mut still = Vec::new();
        for id in unfinished.drain(..) {
            match process.client.status(id).await.unwrap().status.as_str() {
                "RUNNING" => still.push(id),
                "COMPLETED" => finished.push(id),
                other => panic!("seed {seed}, kill {kill}: execution {id} is {other}"),
            }
        }
        unfinished = still;
    }
    for id in unfinished {
        wait(&process.client, id).await;
        finished.push(id);
    }
    let mut again = 0;
    for id in finished {
        again += check_log(&process.client, id, seed).await;
    }
    assert!(again > 0, "seed {seed}: no kill hit a running command, so nothing was shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_no_step_process_running() {
    let data = tempfile::tempdir().unwrap();
    for (kind, setting) in [
        ("shell", "command: 'sleep MARK & echo 1 > FILE; sleep MARK'"),
        (
            "python",
            "code: 'import subprocess; subprocess.run([\"sh\", \"-c\", \"sleep MARK & echo 1 > FILE; sleep MARK\"])'",
        ),
    ] {
        // A unique sleep time marks the processes, because PIDs inside a sandbox differ from those
        // outside.
        let mark = format!("{}00{}", std::process::id(), kind.len());
        let setting = setting.replace("MARK", &mark);
        let file = data.path().join(kind);
        let setting = setting.replace("FILE", &file.display().to_string());
        let content = format!(
            "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: {kind}}}\nworkflow:\n  \
             - {{step: a, tool: {{kind: {kind}, {setting}}}}}\n"
        );
        let process = DevProcess::start(&data.path().join("db"));
        let request = RegisterRequest { content, resource_type: "Playbook".into() };
        process.client.register(&request, false).await.unwrap();
        let request = ExecuteRequest { path: Some(kind.into()), ..ExecuteRequest::default() };
        let id = process.client.execute(&request).await.unwrap().execution_id.get();
        until(|| std::fs::read_to_string(&file).ok()?.trim().parse::<u8>().ok()).await;
        assert_ne!(sleeping(&mark), 0, "{kind}: it runs");
        process.kill();
        until(|| (sleeping(&mark) == 0).then_some(())).await;
        let process = DevProcess::start(&data.path().join("db"));
        process.client.cancel(ExecutionId::new(id), None).await.unwrap();
    }
}

/// Returns the number of processes with `mark` as one of their command-line arguments.
fn sleeping(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let words = |line: &Vec<u8>| line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes());
    lines.filter(words).count()
}

/// Looks until there is something to see.
async fn until<T>(look: impl Fn() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(seen) = look() {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing to see after 30 s");
}

/// Returns a chain of no-op steps with an occasional step that starts a process.
fn playbook() -> String {
    let mut text = String::from(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: kill, path: test/kill}\nworkflow:\n",
    );
    for step in 0..STEPS {
        let tool = if step % 50 == 7 {
            "{kind: shell, command: 'sleep 0.02; echo done'}"
        } else {
            "{kind: noop}"
        };
        let next = if step + 1 < STEPS {
            format!(", next: {{arcs: [{{step: s{}}}]}}", step + 1)
        } else {
            String::new()
        };
        writeln!(text, "  - {{step: s{step}, tool: {tool}{next}}}").unwrap();
    }
    text
}

async fn register(client: &Client) {
    let request = RegisterRequest { content: playbook(), resource_type: "Playbook".into() };
    client.register(&request, false).await.unwrap();
}

async fn execute(client: &Client) -> ExecutionId {
    let request = ExecuteRequest { path: Some("test/kill".into()), ..ExecuteRequest::default() };
    ExecutionId::new(client.execute(&request).await.unwrap().execution_id.get())
}

async fn wait(client: &Client, id: ExecutionId) {
    loop {
        let status = client.status(id).await.unwrap().status;
        if status != "RUNNING" {
            assert_eq!(status, "COMPLETED");
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that the log has no gap, that each step's result is there once, and that it ends once.
/// Returns how many commands were issued again.
async fn check_log(client: &Client, id: ExecutionId, seed: u64) -> usize {
    let mut log: Vec<EventView> = Vec::new();
    loop {
        let after = log.last().map_or(0, |event| event.seq);
        let page = client.log(id, after, 1000).await.unwrap().events;
        if page.is_empty() {
            break;
        }
        log.extend(page);
    }
    let mut per_step: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let (mut ends, mut again) = (0, 0);
    for (index, event) in log.iter().enumerate() {
        assert_eq!(event.seq, u64::try_from(index).unwrap() + 1, "seed {seed}: a gap in {id}");
        let counted = match event.event_type.as_deref().unwrap_or_default() {
            "step.enter" => Some(0),
            "call.done" => Some(1),
            "step.exit" => Some(2),
            "command.expired" => {
                again += 1;
                None
            }
            "playbook.completed" => {
                ends += 1;
                None
            }
            _ => None,
        };
        if let Some(place) = counted {
            per_step.entry(event.node_name.as_deref().unwrap_or_default()).or_default()[place] += 1;
        }
    }
    assert_eq!(ends, 1, "seed {seed}: {id} ends once");
    assert_eq!(per_step.len(), STEPS, "seed {seed}: every step of {id} ran");
    for (step, counts) in per_step {
        assert_eq!(counts, [1, 1, 1], "seed {seed}: {step} of {id}: entered, answered, left");
    }
    again
}

fn kills() -> u32 {
    setting("NOETL_KILLS").and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// Returns the seed of the moments at which the process is killed: `NOETL_TEST_SEED`, or 0 without it.
fn seed() -> u64 {
    setting("NOETL_TEST_SEED").map_or(0, |text| text.parse().expect("NOETL_TEST_SEED is a number"))
}

#[expect(clippy::disallowed_methods, reason = "how the test is told to run longer")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

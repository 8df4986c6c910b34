//! What the language's larger constructs cost: fan-outs, pipelines, calls, arcs.

use std::fmt::Write as _;
use std::time::Instant;

use noetl_control::ControlPlane;
use noetl_journal::StartRequest;
use noetl_model::{CatalogId, Map, Tenant, Value};
use noetl_store::ExecutionStatus;
use serde_json::json;

use crate::chain::{as_f64, round};
use crate::stage::{Medium, Stage};
use crate::usage::cpu_seconds;

const HEAD: &str = "apiVersion: noetl.io/v2\nkind: Playbook\n";

/// Commands that run at a time.
const SLOTS: usize = 64;

type Measured = Result<Value, Box<dyn std::error::Error>>;

/// A parallel loop over 100 items, many times, and over 10 000 once: what one item costs in each.
pub(crate) async fn fan_out(medium: &Medium) -> Measured {
    const SMALL: usize = 100;
    const LARGE: usize = 10_000;
    let stage = Stage::open(medium, SLOTS).await?;
    let text = format!(
        "{HEAD}metadata: {{name: fan}}\nworkflow:\n  - step: a\n    \
         loop: {{in: '{{{{ workload.items }}}}', iterator: x, spec: {{mode: parallel, max_in_flight: 64}}}}\n    \
         tool: {{kind: noop, result: '{{{{ x }}}}'}}\n"
    );
    let playbook = register(&stage.control, &text).await?;
    // Once to warm up, as everything else is when the larger one runs.
    timed(&stage.control, playbook, &items(SMALL), 5).await?;
    let (small, small_cpu) = timed(&stage.control, playbook, &items(SMALL), LARGE / SMALL).await?;
    let (large, large_cpu) = timed(&stage.control, playbook, &items(LARGE), 1).await?;
    stage.close().await;
    Ok(json!({
        "bench": "fan_out",
        "store": medium.name(),
        "items": LARGE,
        "items_per_second": round(as_f64(LARGE) / large),
        "us_per_item_of_100": round(small * 1e6 / as_f64(LARGE)),
        "us_per_item_of_10000": round(large * 1e6 / as_f64(LARGE)),
        "cost_ratio": round(large / small),
        "cpu_ratio": round(large_cpu / small_cpu),
    }))
}

/// One command that runs 1 000 tasks, against ten that run 100 each.
pub(crate) async fn pipeline(medium: &Medium) -> Measured {
    const TASKS: usize = 1000;
    let stage = Stage::open(medium, SLOTS).await?;
    let text = |tasks: usize| {
        let mut text =
            format!("{HEAD}metadata: {{name: pipe{tasks}}}\nworkflow:\n  - step: a\n    tool:\n");
        for task in 0..tasks {
            let _ = writeln!(text, "      - {{name: t{task}, kind: noop, result: {{v: {task}}}}}");
        }
        text
    };
    let large = register(&stage.control, &text(TASKS)).await?;
    let small = register(&stage.control, &text(TASKS / 10)).await?;
    let (large_seconds, _) = timed(&stage.control, large, &Map::new(), 20).await?;
    let (small_seconds, _) = timed(&stage.control, small, &Map::new(), 200).await?;
    stage.close().await;
    let tasks = as_f64(TASKS * 20);
    Ok(json!({
        "bench": "pipeline",
        "store": medium.name(),
        "tasks": TASKS,
        "tasks_per_second": round(tasks / large_seconds),
        "us_per_task_of_100": round(small_seconds * 1e6 / tasks),
        "us_per_task_of_1000": round(large_seconds * 1e6 / tasks),
        "cost_ratio": round(large_seconds / small_seconds),
    }))
}

/// Calls of a playbook of one step, from a loop that runs many at a time.
pub(crate) async fn calls(medium: &Medium) -> Measured {
    const CALLS: usize = 2000;
    let stage = Stage::open(medium, SLOTS).await?;
    let child = format!(
        "{HEAD}metadata: {{name: child, path: bench/child}}\nworkflow:\n  \
         - {{step: end, tool: {{kind: noop, result: {{v: 1}}}}}}\n"
    );
    register(&stage.control, &child).await?;
    let parent = format!(
        "{HEAD}metadata: {{name: parent}}\nworkflow:\n  - step: a\n    \
         loop: {{in: '{{{{ workload.items }}}}', iterator: x, spec: {{mode: parallel, max_in_flight: 64}}}}\n    \
         tool: {{kind: playbook, path: bench/child, return_step: end, input: {{n: '{{{{ x }}}}'}}}}\n"
    );
    let parent = register(&stage.control, &parent).await?;
    let (seconds, cpu) = timed(&stage.control, parent, &items(CALLS), 1).await?;
    stage.close().await;
    Ok(json!({
        "bench": "calls",
        "store": medium.name(),
        "calls": CALLS,
        "calls_per_second": round(as_f64(CALLS) / seconds),
        "cpu_ms_per_1000_calls": round(cpu * 1e6 / as_f64(CALLS)),
    }))
}

/// Results of steps that are kept in the log, and of such that are kept beside it.
pub(crate) async fn large(medium: &Medium) -> Measured {
    const STEPS: usize = 20;
    const TIMES: usize = 10;
    const SMALL: usize = 16 * 1024;
    const LARGE: usize = 256 * 1024;
    let stage = Stage::open(medium, SLOTS).await?;
    let mut text = format!("{HEAD}metadata: {{name: large}}\nworkflow:\n");
    for step in 0..STEPS {
        let _ = writeln!(
            text,
            "  - {{step: s{step}, tool: {{kind: noop, result: {{text: '{{{{ workload.text }}}}', n: {step}}}}}, next: {{arcs: [{{step: s{}}}]}}}}",
            step + 1
        );
    }
    let _ = writeln!(text, "  - {{step: s{STEPS}, tool: {{kind: noop}}}}");
    let playbook = register(&stage.control, &text).await?;
    let of = |bytes: usize| Map::from_iter([("text".to_owned(), Value::from("x".repeat(bytes)))]);
    let (small, _) = timed(&stage.control, playbook, &of(SMALL), TIMES).await?;
    let (large, cpu) = timed(&stage.control, playbook, &of(LARGE), TIMES).await?;
    stage.close().await;
    let results = as_f64(STEPS * TIMES);
    Ok(json!({
        "bench": "large",
        "store": medium.name(),
        "results": STEPS * TIMES,
        "us_per_result_of_16_kib": round(small * 1e6 / results),
        "us_per_result_of_256_kib": round(large * 1e6 / results),
        "megabytes_per_second": round(results * as_f64(LARGE) / 1e6 / large),
        "cpu_ms_per_result": round(cpu * 1e3 / results),
    }))
}

/// Arcs of routing steps, which need no worker: 100 000 of them, decided and recorded.
pub(crate) async fn arcs(medium: &Medium) -> Measured {
    const EACH: usize = 1000;
    const EXECUTIONS: usize = 100;
    let stage = Stage::open(medium, SLOTS).await?;
    let mut text = format!("{HEAD}metadata: {{name: arcs}}\nworkflow:\n");
    for step in 0..EACH {
        let _ = writeln!(
            text,
            "  - {{step: s{step}, next: {{arcs: [{{step: never, when: 'workload.n > {step}'}}, {{step: s{}}}]}}}}",
            step + 1
        );
    }
    let _ = writeln!(
        text,
        "  - {{step: s{EACH}, tool: {{kind: noop}}}}\n  - {{step: never, tool: {{kind: noop}}}}"
    );
    let playbook = register(&stage.control, &text).await?;
    let payload = Map::from_iter([("n".to_owned(), Value::from(-1))]);
    let (seconds, cpu) = timed(&stage.control, playbook, &payload, EXECUTIONS).await?;
    stage.close().await;
    let arcs = as_f64(EACH * EXECUTIONS);
    Ok(json!({
        "bench": "arcs",
        "store": medium.name(),
        "steps": EACH * EXECUTIONS,
        "steps_per_second": round(arcs / seconds),
        "cpu_us_per_step": round(cpu * 1e6 / arcs),
    }))
}

fn items(count: usize) -> Map {
    let items: Vec<Value> = (0..count).map(Value::from).collect();
    Map::from_iter([("items".to_owned(), Value::Array(items))])
}

async fn register(
    control: &ControlPlane,
    text: &str,
) -> Result<CatalogId, Box<dyn std::error::Error>> {
    let tenant = Tenant::default();
    let (entry, _) = control.catalog.register(&tenant, text.to_owned(), "playbook", false).await?;
    Ok(entry.id)
}

/// Runs a playbook some times, one after the other; answers the seconds and processor seconds.
async fn timed(
    control: &ControlPlane,
    playbook: CatalogId,
    payload: &Map,
    times: usize,
) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let tenant = Tenant::default();
    let (started, cpu) = (Instant::now(), cpu_seconds());
    for _ in 0..times {
        let payload = payload.clone();
        let request = StartRequest { catalog: Some(playbook), payload, ..StartRequest::default() };
        let id = control.journal.executions.start(&tenant, request).await?.execution;
        let row = control
            .journal
            .executions
            .wait_until_finished(&tenant, id)
            .await?
            .ok_or("the execution is gone")?;
        if row.status != ExecutionStatus::Completed {
            return Err(format!("it ended {:?}: {:?}", row.status, row.error).into());
        }
    }
    Ok((started.elapsed().as_secs_f64(), cpu_seconds() - cpu))
}

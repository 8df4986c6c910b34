//! Simulates a whole control plane on simulated time, from one seed.
//!
//! Processes, workers, clients, a database, and a bus share one runtime whose clock advances while all
//! tasks are idle. Every random choice follows from the seed: the playbooks, the durations, and the
//! fault at each database call. A process that dies stops at such a call and never resumes. An
//! observer checks each append; once faults stop, every execution has to finish.

mod chance;
mod clients;
mod connection;
mod fault;
mod lock;
mod observer;
mod outages;
mod plan;
mod planted;
mod playbooks;
mod process;
mod remote_worker;
mod scene;
mod shrink;
mod stream;
mod tool;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{CatalogId, Clock, ExecutionId, Tenant};
use noetl_store::{CatalogStore, NewEntry};
use noetl_views::verify;
use tokio::task::JoinSet;

pub use self::fault::Fault;
use self::plan::Plan;
pub use self::plan::SimConfig;
pub use self::planted::Planted;
use self::scene::Scene;
pub use self::shrink::shrink;
use self::stream::Difference;

/// Most simulated time for all executions to finish once faults stop.
const CALM_MAX: Duration = Duration::from_secs(2 * 3600);

/// Interval between checks that all executions finished.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Most simulated time for the stream to become complete.
const STREAM_MAX: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Default)]
pub struct SimReport {
    /// First violated promise, if any.
    pub violation: Option<String>,
    /// Summary of the simulated setup.
    pub plan: String,
    /// Events of the simulation, one per line.
    pub transcript: Vec<String>,
    /// Number of faults by kind.
    pub faults: BTreeMap<Fault, u64>,
    pub executions: usize,
    pub events: u64,
    pub processes: usize,
}

/// Runs the simulation of a seed.
///
/// A seed repeats exactly only in a process whose randomness follows from the seed (`noetl-sim`): hash
/// maps and `select!` draw from the system in other processes.
pub fn simulate(config: &SimConfig) -> SimReport {
    let plan = Plan::new(config.clone());
    let summary = plan.summary();
    let (mut report, outcomes) = run_on_runtime(plan.clone());
    report.plan = summary;
    if report.violation.is_none() && plan.asked.iter().any(|asked| asked.is_settled) {
        let (calm, expected) = run_on_runtime(plan.without_faults());
        if let Some(violation) = calm.violation {
            report.violation = Some(format!("without faults: {violation}"));
        }
        for (number, (actual, expected_outcome)) in
            outcomes.iter().filter_map(|(key, actual)| Some((key, (actual, expected.get(key)?))))
        {
            if actual != expected_outcome && report.violation.is_none() {
                let violation = format!(
                    "start {number} ended as {actual}, without faults as {expected_outcome}"
                );
                report.violation = Some(violation);
            }
        }
    }
    report
}

type Outcomes = BTreeMap<usize, String>;

fn run_on_runtime(plan: Plan) -> (SimReport, Outcomes) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(run(plan))
}

async fn run(plan: Plan) -> (SimReport, Outcomes) {
    let scene = Arc::new(Scene::new(plan));
    register(&scene).await;
    let mut actors = JoinSet::new();
    let mut clients = JoinSet::new();
    for seat in 0..scene.plan.seats {
        actors.spawn(process::run(scene.clone(), seat));
    }
    for worker in 0..scene.plan.workers {
        actors.spawn(remote_worker::run(scene.clone(), worker));
    }
    actors.spawn(clients::approve(scene.clone()));
    actors.spawn(outages::run(scene.clone()));
    for (number, asked) in scene.plan.asked.iter().enumerate() {
        clients.spawn(clients::run(scene.clone(), number, asked.clone()));
    }
    let outcomes = wait_until_finished(&scene, clients).await;
    actors.shutdown().await;
    let changing = scene.lock();
    let report = SimReport {
        violation: changing.observer.first_wrong.clone(),
        plan: String::new(),
        transcript: changing.transcript.clone(),
        faults: changing.counts.clone(),
        executions: changing.started.len(),
        events: changing.observer.events,
        processes: changing.lives.len(),
    };
    drop(changing);
    (report, outcomes)
}

async fn register(scene: &Scene) {
    for (number, document) in scene.plan.documents.iter().enumerate() {
        let entry = NewEntry {
            id: CatalogId::new(i64::try_from(number).unwrap_or_default() + 1),
            path: document.path.clone(),
            kind: "playbook".to_owned(),
            content: document.text.clone(),
            layout: None,
            payload: None,
            meta: None,
            at: scene.clock.now(),
        };
        let registered = scene.store.register(&Tenant::default(), entry).await;
        registered.expect("the memory store accepts it");
    }
}

/// Waits until all executions finished, and checks the final state.
async fn wait_until_finished(scene: &Scene, mut clients: JoinSet<()>) -> Outcomes {
    let mut calm = Duration::ZERO;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        while clients.try_join_next().is_some() {}
        let unfinished = {
            let mut changing = scene.lock();
            changing.observer.look(&scene.store);
            changing.observer.unfinished()
        };
        if scene.is_wrong() {
            return Outcomes::new();
        }
        if clients.is_empty() && unfinished.is_empty() {
            break;
        }
        if !scene.is_troubled() {
            calm += CHECK_INTERVAL;
        }
        if calm > CALM_MAX {
            let clients = clients.len();
            let stuck = format!("stuck: {}; {clients} client(s) wait", unfinished.join("; "));
            scene.wrong(stuck);
            return Outcomes::new();
        }
    }
    wait_until_published(scene).await;
    check_final_state(scene).await
}

/// Waits until the stream has every event, and checks that it has nothing else and the right order.
async fn wait_until_published(scene: &Scene) {
    let mut waited = Duration::ZERO;
    loop {
        let logs = scene.lock().observer.logs(&scene.store);
        let problem = match stream::difference(&scene.stream.streams(), &logs) {
            None => return,
            Some(Difference::Missing(_)) if waited <= STREAM_MAX + scene.plan.trouble => None,
            Some(Difference::Missing(problem) | Difference::Wrong(problem)) => Some(problem),
        };
        if let Some(problem) = problem {
            return scene.wrong(problem);
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
        waited += CHECK_INTERVAL;
    }
}

/// Verifies every log, and returns the outcomes of starts that depend on the playbook alone.
async fn check_final_state(scene: &Scene) -> Outcomes {
    let verified = verify(&*scene.store, ExecutionId::new(i64::MIN), usize::MAX).await;
    for problem in verified.expect("the memory store responds").problems {
        let label = scene.lock().observer.label(problem.execution);
        scene.wrong(format!("{label}: {}", problem.message));
    }
    let mut outcomes = Outcomes::new();
    let changing = &mut *scene.lock();
    changing.observer.replay(&scene.store);
    for (number, executions) in &changing.started {
        if executions.len() > 1 {
            let wrong = format!("start {number} became {} executions", executions.len());
            changing.observer.wrong(wrong);
        }
        let is_settled = scene.plan.asked.get(*number).is_some_and(|asked| asked.is_settled);
        if let Some(execution) = executions.first().filter(|_| is_settled) {
            let outcome = changing.observer.outcome(*execution, &scene.store);
            outcomes.extend(outcome.map(|outcome| (*number, outcome)));
        }
    }
    outcomes
}

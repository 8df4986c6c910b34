//! A whole control plane on simulated time, under one seed.
//!
//! Processes, workers, clients, a database and a bus share one runtime whose clock moves when nobody
//! has anything to do. Everything that could be left to luck is drawn from the seed: what runs, how
//! long things take, and what goes wrong at every call of the database. Whoever dies stops at such a
//! call and never moves again. What is appended is looked at as it happens; when nothing goes wrong
//! any more, everything has to come to its end.

mod chance;
mod clients;
mod elsewhere;
mod fault;
mod observer;
mod plan;
mod planted;
mod playbooks;
mod scene;
mod seat;
mod shrink;
mod stream;
mod tool;
mod weather;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_control::verify;
use noetl_model::{CatalogId, Clock, ExecutionId, Tenant};
use noetl_store::{Catalog, NewEntry};
use tokio::task::JoinSet;

pub use self::fault::Fault;
use self::plan::Plan;
pub use self::plan::Wish;
pub use self::planted::Planted;
use self::scene::Scene;
pub use self::shrink::shrink;
use self::stream::Difference;

/// How long everything may take once nothing goes wrong any more.
const CALM_MAX: Duration = Duration::from_secs(2 * 3600);

/// How often it is looked whether all is over.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long the stream may take to be complete.
const STREAM_MAX: Duration = Duration::from_secs(300);

/// What became of a world.
#[derive(Debug, Clone, Default)]
pub struct Lived {
    /// What was wrong with it; nothing when all was as it should be.
    pub wrong: Option<String>,
    /// What it was, in a few words.
    pub plan: String,
    /// What happened, line by line.
    pub transcript: Vec<String>,
    /// How often what went wrong.
    pub faults: BTreeMap<Fault, u64>,
    /// Executions that were started.
    pub executions: usize,
    /// Events that were appended.
    pub events: u64,
    /// Processes that were there, one after another.
    pub processes: usize,
}

/// Lives through the world of a seed. The same seed makes the same world wherever chance is the
/// seed's alone, which takes a process of its own (`noetl-sim`): hash maps and `select!` draw from
/// the system otherwise.
pub fn live(wish: &Wish) -> Lived {
    let plan = Plan::new(wish.clone());
    let words = plan.in_words();
    let (mut lived, outcomes) = on_a_runtime(plan.clone());
    lived.plan = words;
    if lived.wrong.is_none() && plan.asked.iter().any(|asked| asked.is_settled) {
        let (calm, expected) = on_a_runtime(plan.calm());
        if let Some(wrong) = calm.wrong {
            lived.wrong = Some(format!("without faults: {wrong}"));
        }
        for (number, (found, wanted)) in
            outcomes.iter().filter_map(|(key, found)| Some((key, (found, expected.get(key)?))))
        {
            if found != wanted && lived.wrong.is_none() {
                let wrong = format!("start {number} ended as {found}, without faults as {wanted}");
                lived.wrong = Some(wrong);
            }
        }
    }
    lived
}

type Outcomes = BTreeMap<usize, String>;

fn on_a_runtime(plan: Plan) -> (Lived, Outcomes) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(run(plan))
}

async fn run(plan: Plan) -> (Lived, Outcomes) {
    let scene = Arc::new(Scene::new(plan));
    register(&scene).await;
    let mut people = JoinSet::new();
    let mut clients = JoinSet::new();
    for seat in 0..scene.plan.seats {
        people.spawn(seat::run(scene.clone(), seat));
    }
    for worker in 0..scene.plan.workers {
        people.spawn(elsewhere::run(scene.clone(), worker));
    }
    people.spawn(clients::approve(scene.clone()));
    people.spawn(weather::run(scene.clone()));
    for (number, asked) in scene.plan.asked.iter().enumerate() {
        clients.spawn(clients::run(scene.clone(), number, asked.clone()));
    }
    let outcomes = until_over(&scene, clients).await;
    people.shutdown().await;
    let changing = scene.lock();
    let lived = Lived {
        wrong: changing.observer.first_wrong.clone(),
        plan: String::new(),
        transcript: changing.transcript.clone(),
        faults: changing.counts.clone(),
        executions: changing.started.len(),
        events: changing.observer.events,
        processes: changing.lives.len(),
    };
    drop(changing);
    (lived, outcomes)
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
        let kept = scene.store.register(&Tenant::default(), entry).await;
        kept.expect("the memory store takes it");
    }
}

/// Waits until all executions are over, and looks at what is left.
async fn until_over(scene: &Scene, mut clients: JoinSet<()>) -> Outcomes {
    let mut calm = Duration::ZERO;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
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
            calm += LOOK_EVERY;
        }
        if calm > CALM_MAX {
            let clients = clients.len();
            let stuck = format!("stuck: {}; {clients} client(s) wait", unfinished.join("; "));
            scene.wrong(stuck);
            return Outcomes::new();
        }
    }
    is_published(scene).await;
    at_the_end(scene).await
}

/// Waits until the stream has every event, and checks that it has nothing else and the right order.
async fn is_published(scene: &Scene) {
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
        tokio::time::sleep(LOOK_EVERY).await;
        waited += LOOK_EVERY;
    }
}

async fn at_the_end(scene: &Scene) -> Outcomes {
    let verified = verify(&*scene.store, ExecutionId::new(i64::MIN), usize::MAX).await;
    for problem in verified.expect("the memory store answers").problems {
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

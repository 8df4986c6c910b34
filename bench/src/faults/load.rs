//! Executions over HTTP, by callers that come again until they are answered.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use noetl_api::catalog::RegisterRequest;
use noetl_api::execute::ExecuteRequest;
use noetl_model::ExecutionId;
use tokio::task::JoinSet;

use crate::Failure;
use crate::chance::Chance;
use crate::process::Server;

/// Callers, and how many executions each has under way.
const CALLERS: usize = 4;
const UNDER_WAY: usize = 8;

/// Steps side by side between the first and the last.
const WIDTH: usize = 6;

/// Steps of one execution.
pub(crate) const STEPS: usize = WIDTH + 2;

/// What is run.
pub(crate) const PATH: &str = "soak/fan";

/// How long a caller waits before it comes again.
const REST: Duration = Duration::from_millis(200);

/// How often it is tried to register a playbook.
const REGISTERED_MAX: usize = 20;

/// Callers at work.
pub(crate) struct Load {
    is_over: Arc<AtomicBool>,
    started: Arc<AtomicUsize>,
    callers: JoinSet<Vec<ExecutionId>>,
}

impl Load {
    pub(crate) async fn start(
        servers: Vec<Arc<Server>>,
        chance: &mut Chance,
    ) -> Result<Self, Failure> {
        register(&servers[0], playbook()).await?;
        let (is_over, started) = (Arc::new(AtomicBool::new(false)), Arc::<AtomicUsize>::default());
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let caller = Caller {
                servers: servers.clone(),
                chance: chance.part(),
                is_over: is_over.clone(),
                started: started.clone(),
            };
            callers.spawn(caller.run());
        }
        Ok(Self { is_over, started, callers })
    }

    /// How many starts were answered so far.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    /// Waits until anything runs: what is broken before that shows nothing.
    pub(crate) async fn begun(&self) {
        while self.started() == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops it. Returns every execution whose start was answered.
    pub(crate) async fn stop(self) -> Result<Vec<ExecutionId>, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        Ok(self.callers.join_all().await.into_iter().flatten().collect())
    }
}

/// Registers a playbook. A connection of before a fault may be lost without a word, so it is tried again.
pub(crate) async fn register(server: &Server, playbook: String) -> Result<(), Failure> {
    let request = RegisterRequest::playbook(playbook);
    let mut tries = 1;
    loop {
        let Some(client) = server.client().await else { return Err("no server".into()) };
        match client.register(&request, false).await {
            Ok(_) => return Ok(()),
            Err(error) if tries == REGISTERED_MAX => return Err(error.into()),
            Err(_) => tokio::time::sleep(REST).await,
        }
        tries += 1;
    }
}

struct Caller {
    servers: Vec<Arc<Server>>,
    chance: Chance,
    is_over: Arc<AtomicBool>,
    started: Arc<AtomicUsize>,
}

impl Caller {
    async fn run(mut self) -> Vec<ExecutionId> {
        let mut acknowledged = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let number = usize::try_from(self.chance.below(2)).unwrap_or_default();
            let Some(client) = self.servers[number].client().await else {
                tokio::time::sleep(REST).await;
                continue;
            };
            // Enough is under way while the oldest of these still runs.
            if let Some(oldest) = acknowledged.len().checked_sub(UNDER_WAY) {
                let status = client.status(acknowledged[oldest]).await;
                if !status.is_ok_and(|reply| reply.status != "RUNNING") {
                    tokio::time::sleep(REST).await;
                    continue;
                }
            }
            let request = ExecuteRequest::path(PATH, serde_json::Map::new());
            match client.execute(&request).await {
                Ok(reply) => {
                    acknowledged.push(ExecutionId::new(reply.execution_id.get()));
                    self.started.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => tokio::time::sleep(REST).await,
            }
        }
        acknowledged
    }
}

/// Steps side by side, a process now and then.
fn playbook() -> String {
    let arcs: Vec<String> = (0..WIDTH).map(|n| format!("{{step: s{n}}}")).collect();
    let mut text = format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: fan, path: {PATH}}}\n\
         workflow:\n  - {{step: start, next: {{spec: {{mode: inclusive}}, arcs: [{}]}}}}\n",
        arcs.join(", ")
    );
    for n in 0..WIDTH {
        let tool = if n == 0 { "{kind: shell, command: 'sleep 0.1'}" } else { "{kind: noop}" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - {{step: s{n}, tool: {tool}, next: {{arcs: [{{step: end}}]}}}}");
    }
    text.push_str("  - {step: end, tool: {kind: noop}}\n");
    text
}

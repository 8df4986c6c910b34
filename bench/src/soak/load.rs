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
use crate::servers::Server;

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
        let Some(client) = servers[0].client().await else { return Err("no server".into()) };
        client.register(&RegisterRequest::playbook(playbook()), false).await?;
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

    /// Stops it. Returns every execution whose start was answered.
    pub(crate) async fn stop(self) -> Result<Vec<ExecutionId>, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        Ok(self.callers.join_all().await.into_iter().flatten().collect())
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

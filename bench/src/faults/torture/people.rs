//! Callers who start, decide, cancel and look, all at once, and remember what they were told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use noetl_api::execute::{ExecuteRequest, StartDedup};
use noetl_api::executions::AnswerRequest;
use noetl_api::{Client, ClientError};
use noetl_model::{CommandId, ExecutionId, Map};
use serde_json::json;
use tokio::task::JoinSet;

use crate::Failure;
use crate::chance::Chance;
use crate::load::register;
use crate::process::Server;

use super::order::{CALLS_MAX, Call, Made, Seen, is_in_order, telling};

/// Executions under way at a time.
const GROUPS: usize = 4;

/// What is run: it waits for one decision and says which it was.
const PATH: &str = "torture/ask";
const PLAYBOOK: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: ask, path: torture/ask}
workflow:
  - {step: start, tool: {kind: noop}, next: {arcs: [{step: ask}]}}
  - {step: ask, tool: {kind: approval, message: which?}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: '{{ ask }}'}}
";

/// How long a call may take before it counts as not answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long whoever has no answer waits before it calls again.
const REST: Duration = Duration::from_millis(150);

/// How long one execution may take.
const GROUP_MAX: Duration = Duration::from_secs(240);

/// What all of them were told, and what does not fit.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) executions: usize,
    pub(crate) calls: usize,
    pub(crate) unanswered: usize,
    /// Histories that fit no order, and executions that did not end.
    pub(crate) problems: Vec<String>,
}

/// Callers at work.
pub(crate) struct People {
    is_over: Arc<AtomicBool>,
    groups: JoinSet<Told>,
}

impl People {
    pub(crate) async fn start(
        servers: &[Arc<Server>],
        chance: &mut Chance,
    ) -> Result<Self, Failure> {
        register(&servers[0], PLAYBOOK.to_owned()).await?;
        let is_over = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let mut groups = JoinSet::new();
        for number in 0..GROUPS {
            let group = Group {
                number,
                began,
                servers: servers.to_vec(),
                chance: chance.part(),
                is_over: is_over.clone(),
            };
            groups.spawn(group.run());
        }
        Ok(Self { is_over, groups })
    }

    /// Lets them end what they began, and says what they were told.
    pub(crate) async fn stop(self) -> Told {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = Told::default();
        for told in self.groups.join_all().await {
            all.executions += told.executions;
            all.calls += told.calls;
            all.unanswered += told.unanswered;
            all.problems.extend(told.problems);
        }
        all
    }
}

/// Callers who work on one execution after the other.
struct Group {
    number: usize,
    began: Instant,
    servers: Vec<Arc<Server>>,
    chance: Chance,
    is_over: Arc<AtomicBool>,
}

impl Group {
    async fn run(mut self) -> Told {
        let mut told = Told::default();
        while !self.is_over.load(Ordering::Relaxed) {
            let case = Arc::new(Case {
                key: format!("torture-{}-{}", self.number, told.executions),
                began: self.began,
                servers: self.servers.clone(),
                calls: Mutex::default(),
                turns: AtomicUsize::new(self.number),
            });
            let lived = tokio::time::timeout(GROUP_MAX, case.live(&mut self.chance)).await;
            let calls = case.lock().clone();
            told.executions += 1;
            told.calls += calls.len();
            told.unanswered += calls.iter().filter(|call| call.answered.is_none()).count();
            if lived.is_err() {
                told.problems.push(format!("{}: not over after {GROUP_MAX:?}", case.key));
            }
            if !is_in_order(&calls) {
                told.problems.push(format!("{}: no order for {calls:?}", case.key));
            }
        }
        told
    }
}

/// One execution and everything that was called for it.
struct Case {
    key: String,
    began: Instant,
    servers: Vec<Arc<Server>>,
    calls: Mutex<Vec<Made>>,
    turns: AtomicUsize,
}

impl Case {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Made>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Whether there is room for another call to be remembered; the last ones are for the end.
    fn has_room(&self) -> bool {
        telling(&self.lock()).len() < CALLS_MAX - 12
    }

    async fn client(&self) -> Client {
        loop {
            let turn = self.turns.fetch_add(1, Ordering::Relaxed);
            if let Some(client) = self.servers[turn % self.servers.len()].client().await {
                return client;
            }
            tokio::time::sleep(REST).await;
        }
    }

    /// Makes a call and remembers it; `said` makes what it was told of what was called.
    async fn call<T>(
        &self,
        asked: Call,
        calling: impl Future<Output = Result<T, ClientError>>,
        said: impl FnOnce(Result<&T, &ClientError>) -> Option<Call>,
    ) -> Option<T> {
        let made = self.now();
        let place = {
            let mut calls = self.lock();
            calls.push(Made { call: asked, made, answered: None });
            calls.len() - 1
        };
        let answer = tokio::time::timeout(PATIENCE, calling).await.ok()?;
        // Taken before anything else happens here, so that it is not later than it was.
        let answered = self.now();
        if let Some(call) = said(answer.as_ref()) {
            self.lock()[place] = Made { call, made, answered: Some(answered) };
        }
        answer.ok()
    }

    async fn live(&self, chance: &mut Chance) {
        let id = self.start().await;
        let (first, second) = (chance.part(), chance.part());
        let cancels = chance.below(4) == 0;
        tokio::join!(
            self.decide(id, 1, first),
            self.decide(id, 2, second),
            self.look(id, chance.part()),
            self.maybe_cancel(id, cancels, chance.part()),
        );
        self.until_over(id).await;
    }

    async fn start(&self) -> ExecutionId {
        loop {
            let client = self.client().await;
            let dedup = Some(StartDedup { key: self.key.clone(), window_secs: 24 * 3600 });
            let request = ExecuteRequest { dedup, ..ExecuteRequest::path(PATH, Map::new()) };
            let reply = self
                .call(Call::Start, client.execute(&request), |said| said.ok().map(|_| Call::Start))
                .await;
            match reply {
                Some(reply) => return ExecutionId::new(reply.execution_id.get()),
                None => tokio::time::sleep(REST).await,
            }
        }
    }

    /// Finds what is to be decided, and decides it, until somebody has.
    async fn decide(&self, id: ExecutionId, decision: u32, mut chance: Chance) {
        tokio::time::sleep(Duration::from_millis(chance.below(1500))).await;
        while self.has_room() {
            let client = self.client().await;
            let waiting = tokio::time::timeout(PATIENCE, client.approvals(500)).await;
            let Ok(Ok(waiting)) = waiting else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let mine = waiting.approvals.iter().find(|it| it.execution_id.get() == id.get());
            let Some(mine) = mine else {
                // Not there yet, or not any more.
                if self.is_final(id).await {
                    return;
                }
                tokio::time::sleep(REST * 3).await;
                continue;
            };
            let command = CommandId::new(mine.command_id.get());
            let data = json!({ "decision": decision });
            let request = AnswerRequest { token: mine.token.clone(), data, error: None };
            let mut is_refused = false;
            let taken = self
                .call(Call::Decide(decision, None), client.answer(id, command, &request), |said| {
                    match said {
                        Ok(_) => Some(Call::Decide(decision, Some(true))),
                        Err(error) if is_refusal(error) => {
                            is_refused = true;
                            Some(Call::Decide(decision, Some(false)))
                        }
                        Err(_) => None,
                    }
                })
                .await;
            if taken.is_some() || is_refused {
                return;
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn maybe_cancel(&self, id: ExecutionId, cancels: bool, mut chance: Chance) {
        if !cancels {
            return;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(3000))).await;
        while self.has_room() {
            let client = self.client().await;
            let mut is_refused = false;
            let taken = self
                .call(Call::Cancel(None), client.cancel(id, None), |said| match said {
                    Ok(_) => Some(Call::Cancel(Some(true))),
                    Err(error) if is_refusal(error) => {
                        is_refused = true;
                        Some(Call::Cancel(Some(false)))
                    }
                    Err(_) => None,
                })
                .await;
            if taken.is_some() || is_refused {
                return;
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn look(&self, id: ExecutionId, mut chance: Chance) {
        for _ in 0..chance.below(12) {
            if !self.has_room() {
                return;
            }
            self.see(id).await;
            tokio::time::sleep(Duration::from_millis(chance.below(700))).await;
        }
    }

    async fn see(&self, id: ExecutionId) -> Option<Seen> {
        let client = self.client().await;
        let mut seen = None;
        self.call(Call::See(Seen::Running), client.status(id), |said| {
            seen = match said {
                Ok(reply) => match reply.status.as_str() {
                    "RUNNING" => Some(Seen::Running),
                    "COMPLETED" => Some(Seen::Completed),
                    "CANCELLED" => Some(Seen::Cancelled),
                    _ => Some(Seen::Failed),
                },
                Err(error) if error.status() == Some(404) => Some(Seen::Absent),
                Err(_) => None,
            };
            seen.map(Call::See)
        })
        .await;
        seen
    }

    /// The same, not remembered: there are too many of these.
    async fn is_final(&self, id: ExecutionId) -> bool {
        let client = self.client().await;
        let status = tokio::time::timeout(PATIENCE, client.status(id)).await;
        matches!(status, Ok(Ok(reply)) if reply.status != "RUNNING")
    }

    /// Waits for the end, and looks at it once more.
    async fn until_over(&self, id: ExecutionId) {
        while !self.is_final(id).await {
            tokio::time::sleep(REST).await;
        }
        for _ in 0..4 {
            match self.see(id).await {
                Some(Seen::Completed) => break,
                Some(_) => return,
                None => tokio::time::sleep(REST).await,
            }
        }
        for _ in 0..4 {
            let client = self.client().await;
            let found = self
                .call(Call::Result(0), client.execution(id), |said| {
                    let result = said.ok()?.result.as_ref()?;
                    let decision = find_decision(result)?;
                    Some(Call::Result(decision))
                })
                .await;
            if found.is_some() {
                return;
            }
            tokio::time::sleep(REST).await;
        }
    }
}

/// Whether an answer says that something is not done for what it is, and not for lack of luck.
fn is_refusal(error: &ClientError) -> bool {
    error.status().is_some_and(|status| matches!(status, 400..=428 | 430..=499))
}

/// The decision, wherever in a result it is.
fn find_decision(value: &serde_json::Value) -> Option<u32> {
    match value {
        serde_json::Value::Object(map) => match map.get("decision").and_then(|it| it.as_u64()) {
            Some(decision) => u32::try_from(decision).ok(),
            None => map.values().find_map(find_decision),
        },
        serde_json::Value::Array(list) => list.iter().find_map(find_decision),
        // A template renders to text.
        serde_json::Value::String(text) => {
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            find_decision(&value)
        }
        _ => None,
    }
}

//! Writes appends in the order of the calls.
//!
//! One task owns one connection and sends all queued commits in one statement. Commits that arrive
//! while the database works form the next one. Under load, many callers thus share one round trip
//! and one sync. If a group fails, the task retries the commit of each caller separately, so that
//! no caller fails because of another.

use std::collections::{HashMap, HashSet};

use noetl_store::{Committed, StoreError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::arrays::{self, AppendChain, AppenderConfig, EncodedAppend, RejectedChain};
use crate::error::{StatementOutcome, fate, store_error, write_error};
use crate::outbox_rows::OutboxWriter;

/// Number of commit lanes of the event log. A process appends in one of them.
pub(crate) const LANES: u16 = 16;

const ACTION: &str = "append to the event log";

/// Maximum number of commits that wait for the writer.
const QUEUE_MAX: usize = 256;

/// Maximum number of items per statement, checked before the last commit is added. A few hundred
/// amortize the round trip, and a longer transaction only delays its first caller.
const GROUP_MAX: usize = 1024;

/// Maximum number of retries of a statement that the server rolls back because of conflicts.
const RETRIES_MAX: usize = 10;

struct CommitRequest {
    items: Vec<EncodedAppend>,
    answer: oneshot::Sender<CommitOutcome>,
}

type CommitOutcome = Result<Vec<Committed>, StoreError>;

/// Handle to the writer task. The task ends when the handle is dropped.
#[derive(Debug)]
pub(crate) struct WriterHandle {
    requests: mpsc::Sender<CommitRequest>,
    /// Locked while a commit waits for room in the queue, so that commits are queued in call order.
    turn: Mutex<()>,
}

impl WriterHandle {
    pub(crate) fn start(
        connect: PgConnectOptions,
        speaker: AppenderConfig,
        has_outbox: bool,
    ) -> Self {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let append = Appender { speaker, sender: has_outbox.then(OutboxWriter::default) };
        tokio::spawn(WriterTask { connect, append, connection: None, queue }.run());
        Self { requests, turn: Mutex::new(()) }
    }

    pub(crate) async fn commit(&self, items: Vec<EncodedAppend>) -> CommitOutcome {
        let (answer, answered) = oneshot::channel();
        {
            // On a full queue, a new sender can overtake a waiting one. This lock is fair.
            let _turn = self.turn.lock().await;
            let sent = self.requests.send(CommitRequest { items, answer }).await;
            sent.map_err(|_| StoreError::backend(ACTION, "the writer has stopped"))?;
        }
        answered.await.unwrap_or_else(|gone| Err(StoreError::Unknown(gone.into())))
    }
}

struct WriterTask {
    connect: PgConnectOptions,
    append: Appender,
    connection: Option<PgConnection>,
    queue: mpsc::Receiver<CommitRequest>,
}

impl WriterTask {
    async fn run(mut self) {
        while let Some(first) = self.queue.recv().await {
            let mut size = first.items.len();
            let mut group = vec![first];
            while size < GROUP_MAX
                && let Ok(next) = self.queue.try_recv()
            {
                size += next.items.len();
                group.push(next);
            }
            self.commit_group(group).await;
        }
        if let Some(connection) = self.connection {
            // The server closes the connection itself if this message does not arrive.
            let _ = connection.close().await;
        }
    }

    async fn commit_group(&mut self, mut group: Vec<CommitRequest>) {
        match self.write(&group).await {
            Ok(outcomes) => {
                let mut outcomes = outcomes.into_iter();
                for commit in group {
                    let mine = outcomes.by_ref().take(commit.items.len()).collect();
                    commit.answer(Ok(mine));
                }
            }
            Err(StoreError::Unknown(error)) => {
                let text = error.to_string();
                for commit in group {
                    commit.answer(Err(StoreError::Unknown(text.clone().into())));
                }
            }
            Err(error) if group.len() == 1 => {
                if let Some(only) = group.pop() {
                    only.answer(Err(error));
                }
            }
            Err(_) => {
                for commit in group {
                    let outcome = self.write(std::slice::from_ref(&commit)).await;
                    commit.answer(outcome);
                }
            }
        }
    }

    /// Writes a group in one transaction. After an error other than `Unknown`, nothing of it is
    /// committed.
    async fn write(&mut self, group: &[CommitRequest]) -> CommitOutcome {
        let items: Vec<&EncodedAppend> = group.iter().flat_map(|commit| &commit.items).collect();
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let plan = CommitPlan::from_items(&items);
        let mut tries = 0;
        loop {
            match self.send(&items, &plan).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(Failed::Connect(error)) => return Err(store_error(ACTION, error)),
                Err(Failed::Sent(error)) => {
                    let fate = fate(&error);
                    // The connection may lead to a server that is no longer the primary. A new
                    // connection is cheap.
                    if fate != StatementOutcome::Retry {
                        self.connection = None;
                    }
                    tries += 1;
                    if fate != StatementOutcome::Retry || tries > RETRIES_MAX {
                        return Err(write_error(ACTION, error));
                    }
                }
            }
        }
    }

    async fn send(
        &mut self,
        items: &[&EncodedAppend],
        plan: &CommitPlan<'_>,
    ) -> Result<Vec<Committed>, Failed> {
        let Self { connect, append, connection, .. } = self;
        let connected = connected(connect, connection).await.map_err(Failed::Connect)?;
        let mut outcomes = vec![Committed::Appended; items.len()];
        let result = match plan.rounds.as_slice() {
            [only] if !append.speaker.is_pooled => {
                // The statement is its own transaction.
                let not_kept = append.round(connected, only).await;
                not_kept.map(|not_kept| only.settle(items, not_kept, &mut outcomes))
            }
            rounds => append.rounds(connected, items, rounds, &mut outcomes).await,
        };
        let broken = match result {
            Ok(broken) => broken,
            Err(error) => {
                // A transaction left open after an error is rolled back with its connection. All
                // cached tenants are discarded, because some may have been read in it.
                if plan.rounds.len() > 1 || append.speaker.is_pooled {
                    *connection = None;
                    append.sender = append.sender.take().map(|_| OutboxWriter::default());
                }
                return Err(Failed::Sent(error));
            }
        };
        for place in broken {
            // The item belongs to a chain that was rejected as a whole; a part of the chain may be
            // accepted.
            let sent = |error| Failed::Sent(unknown(error));
            let connected = self::connected(connect, connection).await.map_err(sent)?;
            let alone = Round::alone(items, place);
            let not_kept = append.round(connected, &alone).await.map_err(sent)?;
            alone.settle(items, not_kept, &mut outcomes);
        }
        Ok(outcomes)
    }
}

async fn connected<'c>(
    connect: &PgConnectOptions,
    connection: &'c mut Option<PgConnection>,
) -> Result<&'c mut PgConnection, sqlx::Error> {
    let connected = match connection.take() {
        Some(connected) => connected,
        None => connect.connect().await?,
    };
    Ok(connection.insert(connected))
}

/// Converts an error to one of unknown outcome, because part of the group is already committed.
fn unknown(error: sqlx::Error) -> sqlx::Error {
    match fate(&error) {
        StatementOutcome::Unknown => error,
        _ => sqlx::Error::Protocol(error.to_string()),
    }
}

enum Failed {
    Connect(sqlx::Error),
    Sent(sqlx::Error),
}

/// Sends rounds to the database.
struct Appender {
    speaker: AppenderConfig,
    /// Builder of outbox rows. `None` if the outbox is disabled.
    sender: Option<OutboxWriter>,
}

impl Appender {
    async fn round(
        &mut self,
        connection: &mut PgConnection,
        round: &Round<'_>,
    ) -> Result<Vec<RejectedChain>, sqlx::Error> {
        let outgoing = match &mut self.sender {
            Some(sender) => sender.outgoing(connection, &round.chains, &round.places).await?,
            None => Vec::new(),
        };
        arrays::append(connection, &self.speaker, &round.chains, &outgoing).await
    }

    async fn rounds(
        &mut self,
        connection: &mut PgConnection,
        items: &[&EncodedAppend],
        rounds: &[Round<'_>],
        outcomes: &mut [Committed],
    ) -> Result<Vec<usize>, sqlx::Error> {
        let mut transaction = connection.begin().await?;
        for round in rounds {
            let not_kept = self.round(&mut transaction, round).await?;
            for place in round.settle(items, not_kept, outcomes) {
                let alone = Round::alone(items, place);
                let not_kept = self.round(&mut transaction, &alone).await?;
                alone.settle(items, not_kept, outcomes);
            }
        }
        // From here on, an error leaves the outcome unknown.
        transaction.commit().await.map_err(unknown)?;
        Ok(Vec::new())
    }
}

/// Chains of different executions that one statement appends.
struct Round<'a> {
    chains: Vec<AppendChain<'a>>,
    /// Items of each chain, by their index in the group.
    places: Vec<Vec<usize>>,
}

impl<'a> Round<'a> {
    fn alone(items: &[&'a EncodedAppend], place: usize) -> Self {
        Self { chains: vec![vec![items[place]]], places: vec![vec![place]] }
    }

    /// Records the outcomes of rejected chains. Returns the items of rejected chains with several
    /// items, which must be retried one by one.
    fn settle(
        &self,
        items: &[&EncodedAppend],
        not_kept: Vec<RejectedChain>,
        outcomes: &mut [Committed],
    ) -> Vec<usize> {
        let mut apart = Vec::new();
        for one in not_kept {
            let mine = |places: &&Vec<usize>| items[places[0]].execution() == one.execution;
            let Some(places) = self.places.iter().find(mine) else { continue };
            if let [only] = places.as_slice() {
                outcomes[*only] = one.outcome();
            } else {
                apart.extend(places);
            }
        }
        apart
    }
}

/// Assignment of a group's items to statements, in order.
///
/// A statement contains one chain per execution. It inserts timers before it deletes any, which is
/// correct for one item. Items that refer to the same timer therefore go to different statements.
struct CommitPlan<'a> {
    rounds: Vec<Round<'a>>,
}

impl<'a> CommitPlan<'a> {
    fn from_items(items: &[&'a EncodedAppend]) -> Self {
        let mut rounds: Vec<Round<'a>> = Vec::new();
        // Chains by execution, and timer IDs, of the last round.
        let mut chains: HashMap<i64, usize> = HashMap::new();
        let mut due = HashSet::new();
        for (place, item) in items.iter().enumerate() {
            let known = chains.get(&item.execution()).copied();
            let mine: HashSet<_> = item.due_ids().collect();
            let round = match rounds.last_mut() {
                Some(round)
                    if known.is_none_or(|chain| follows(&round.chains[chain], item))
                        && due.is_disjoint(&mine) =>
                {
                    round
                }
                _ => {
                    chains.clear();
                    due.clear();
                    rounds.push_mut(Round { chains: Vec::new(), places: Vec::new() })
                }
            };
            let chain = *chains.entry(item.execution()).or_insert_with(|| {
                round.chains.push(Vec::new());
                round.places.push(Vec::new());
                round.chains.len() - 1
            });
            round.chains[chain].push(item);
            round.places[chain].push(place);
            due.extend(mine);
        }
        Self { rounds }
    }
}

fn follows(chain: &AppendChain<'_>, item: &EncodedAppend) -> bool {
    item.start.is_none()
        && chain.last().is_some_and(|last| {
            arrays::stored_seq(last.row.version) == item.expected && last.last == item.after
        })
}

impl CommitRequest {
    fn answer(self, outcome: CommitOutcome) {
        // A caller that has gone away learns the outcome from the log.
        let _ = self.answer.send(outcome);
    }
}

//! Appends in the order they were asked for.
//!
//! One task owns one connection and sends whatever is queued in one statement; what arrives while
//! the database works is the next one. Under load many callers so share one round trip and one
//! sync. A group that fails is tried again caller by caller, so nobody fails because of another.

use std::collections::{HashMap, HashSet};

use noetl_store::{Committed, StoreError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::arrays::{self, Chain, Item, NotKept, Speaker};
use crate::error::{Fate, fate, store_error, write_error};
use crate::outgoing::Sender;

/// Lanes of the log; a process appends in one of them.
pub(crate) const LANES: u16 = 16;

const ACTION: &str = "append to the event log";

/// Calls that may wait for the writer.
const QUEUE_MAX: usize = 256;

/// Items in one statement, counted before the last caller is added. Past a few hundred the round
/// trip is paid for, and a longer transaction only makes its first caller wait.
const GROUP_MAX: usize = 1024;

/// How often a statement is sent again that the server undid because of others.
const RETRIES_MAX: usize = 10;

struct Commit {
    items: Vec<Item>,
    answer: oneshot::Sender<Outcome>,
}

type Outcome = Result<Vec<Committed>, StoreError>;

/// The caller's side of the task. The task ends with the last of these.
#[derive(Debug)]
pub(crate) struct Writer {
    requests: mpsc::Sender<Commit>,
    /// Held while a commit waits for room in the queue, so that commits are queued in the order
    /// they were asked for.
    turn: Mutex<()>,
}

impl Writer {
    pub(crate) fn start(connect: PgConnectOptions, speaker: Speaker, has_outbox: bool) -> Self {
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let append = Appender { speaker, sender: has_outbox.then(Sender::default) };
        tokio::spawn(Task { connect, append, connection: None, queue }.run());
        Self { requests, turn: Mutex::new(()) }
    }

    pub(crate) async fn commit(&self, items: Vec<Item>) -> Outcome {
        let (answer, answered) = oneshot::channel();
        {
            // A queue that is full lets a newcomer pass one that waits; this lock does not.
            let _turn = self.turn.lock().await;
            let sent = self.requests.send(Commit { items, answer }).await;
            sent.map_err(|_| StoreError::backend(ACTION, "the writer has stopped"))?;
        }
        answered.await.unwrap_or_else(|gone| Err(StoreError::Unknown(gone.into())))
    }
}

struct Task {
    connect: PgConnectOptions,
    append: Appender,
    connection: Option<PgConnection>,
    queue: mpsc::Receiver<Commit>,
}

impl Task {
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
            // The server ends it by itself if this does not reach it.
            let _ = connection.close().await;
        }
    }

    async fn commit_group(&mut self, mut group: Vec<Commit>) {
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

    /// Writes a group in one transaction; on an error other than `Unknown` nothing of it stays.
    async fn write(&mut self, group: &[Commit]) -> Outcome {
        let items: Vec<&Item> = group.iter().flat_map(|commit| &commit.items).collect();
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let plan = Plan::of(&items);
        let mut tries = 0;
        loop {
            match self.send(&items, &plan).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(Failed::Connect(error)) => return Err(store_error(ACTION, error)),
                Err(Failed::Sent(error)) => {
                    let fate = fate(&error);
                    // A connection that refuses may be to a server that is not the right one any
                    // more; another costs little.
                    if fate != Fate::Retry {
                        self.connection = None;
                    }
                    tries += 1;
                    if fate != Fate::Retry || tries > RETRIES_MAX {
                        return Err(write_error(ACTION, error));
                    }
                }
            }
        }
    }

    async fn send(&mut self, items: &[&Item], plan: &Plan<'_>) -> Result<Vec<Committed>, Failed> {
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
                // A transaction that is left open on an error is undone with its connection, and
                // with it what was read in it.
                if plan.rounds.len() > 1 || append.speaker.is_pooled {
                    *connection = None;
                    append.sender = append.sender.take().map(|_| Sender::default());
                }
                return Err(Failed::Sent(error));
            }
        };
        for place in broken {
            // Part of a chain that did not fit as a whole; a part of it may.
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

/// Part of the group is committed already, so what failed leaves its whole unknown.
fn unknown(error: sqlx::Error) -> sqlx::Error {
    match fate(&error) {
        Fate::Unknown => error,
        _ => sqlx::Error::Protocol(error.to_string()),
    }
}

enum Failed {
    Connect(sqlx::Error),
    Sent(sqlx::Error),
}

/// Sends rounds.
struct Appender {
    speaker: Speaker,
    /// Given when the outbox is on.
    sender: Option<Sender>,
}

impl Appender {
    async fn round(
        &mut self,
        connection: &mut PgConnection,
        round: &Round<'_>,
    ) -> Result<Vec<NotKept>, sqlx::Error> {
        let outgoing = match &mut self.sender {
            Some(sender) => sender.outgoing(connection, &round.chains, &round.places).await?,
            None => Vec::new(),
        };
        arrays::append(connection, &self.speaker, &round.chains, &outgoing).await
    }

    async fn rounds(
        &mut self,
        connection: &mut PgConnection,
        items: &[&Item],
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
        // From here on an error does not say whether it was kept.
        transaction.commit().await.map_err(unknown)?;
        Ok(Vec::new())
    }
}

/// Chains of different executions: what one statement takes.
struct Round<'a> {
    chains: Vec<Chain<'a>>,
    /// The items of each chain, by their place in the group.
    places: Vec<Vec<usize>>,
}

impl<'a> Round<'a> {
    fn alone(items: &[&'a Item], place: usize) -> Self {
        Self { chains: vec![vec![items[place]]], places: vec![vec![place]] }
    }

    /// Notes what was not kept. Returns the items of chains that have to be tried one by one.
    fn settle(
        &self,
        items: &[&Item],
        not_kept: Vec<NotKept>,
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

/// How the items of a group are laid out in statements, in their order. A statement takes one chain
/// per execution. It adds due rows first and removes then, which is right for one item; so one that
/// several items name parts them.
struct Plan<'a> {
    rounds: Vec<Round<'a>>,
}

impl<'a> Plan<'a> {
    fn of(items: &[&'a Item]) -> Self {
        let mut rounds: Vec<Round<'a>> = Vec::new();
        // What the newest round has: the chain of each execution, and due rows.
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

fn follows(chain: &Chain<'_>, item: &Item) -> bool {
    item.start.is_none()
        && chain.last().is_some_and(|last| {
            arrays::place(last.row.version) == item.expected && last.last == item.after
        })
}

impl Commit {
    fn answer(self, outcome: Outcome) {
        // A caller that went away finds out by reading the log.
        let _ = self.answer.send(outcome);
    }
}

//! The announcer task: announces commands and scans for lost announcements.

mod overtaken;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noetl_bus::{BusError, CommandBus, ConsumerState, PublishAck, PublishError};
use noetl_compat as compat;
use noetl_journal::{Metrics, PendingAnnouncement};
use noetl_model::{CommandId, CommandState};
use noetl_store::{PublishingStore, StoreError};
use noetl_work::segment;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::STREAM;
use super::message::Routes;
use super::retries::{AnnouncementRetries, DOUBT};
use crate::event_stream::RETRY;

/// Announcements published at a time.
const BATCH: usize = 256;

/// Commands read at a time during a scan.
const PAGE: usize = 1000;

/// Limit of pools with their own consumers. The start of an execution can name any pool; commands
/// of further pools are announced without a consumer.
const POOLS_MAX: usize = 256;

/// Announcement numbers skipped per scan because the stream already knows them.
const TAKEN_MAX: usize = 8;

pub(super) struct Announcer {
    pub(super) routes: Routes,
    pub(super) every: Duration,
    pub(super) databases: Vec<Arc<dyn PublishingStore>>,
    pub(super) bus: Arc<dyn CommandBus>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) notes: mpsc::Receiver<PendingAnnouncement>,
    pub(super) missed: Arc<AtomicBool>,
}

enum ScanError {
    Bus(BusError),
    Store(StoreError),
}

impl From<BusError> for ScanError {
    fn from(error: BusError) -> Self {
        Self::Bus(error)
    }
}

impl From<StoreError> for ScanError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Announcer state carried from one scan to the next.
#[derive(Default)]
struct Memory {
    tries: AnnouncementRetries,
    /// Pools whose consumers were created on this connection.
    ensured: HashSet<Arc<str>>,
    failures: u32,
    /// Incarnation of the stream as of the last scan. A different value means the stream was
    /// recreated.
    stream: Option<i128>,
    /// Whether announcements were lost, so the next scan runs at once.
    is_lost: bool,
}

impl Announcer {
    /// Announces commands until `closing` is cancelled.
    pub(super) async fn run(mut self, closing: CancellationToken) {
        tokio::select! {
            () = self.announce_all() => {}
            () = closing.cancelled() => {}
        }
    }

    async fn announce_all(&mut self) {
        let mut memory = Memory::default();
        loop {
            self.connected().await;
            memory.ensured.clear();
            if let Err(error) = self.bus.ensure(&self.routes.settings()).await {
                memory.failures += 1;
                complain(memory.failures, &error);
                tokio::time::sleep(RETRY.delay(memory.failures)).await;
                continue;
            }
            memory.ensured.extend(Routes::pools().map(Arc::from));
            self.serve(&mut memory).await;
        }
    }

    /// Waits for a connection to the bus. Discards commands queued meanwhile: the first scan after
    /// the connection finds them.
    async fn connected(&mut self) {
        let (bus, notes) = (self.bus.clone(), &mut self.notes);
        let mut connected = std::pin::pin!(bus.connected());
        loop {
            tokio::select! {
                () = &mut connected => return,
                note = notes.recv() => if note.is_none() {
                    connected.await;
                    return;
                },
            }
        }
    }

    /// Announces commands while the bus is connected.
    async fn serve(&mut self, memory: &mut Memory) {
        let mut next = Instant::now();
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                biased;
                count = self.notes.recv_many(&mut batch, BATCH) => {
                    // The queue is closed. Scans continue.
                    if count == 0 {
                        tokio::time::sleep_until(next).await;
                    }
                    let first = batch.drain(..).map(|note| (note, 1)).collect();
                    let is_left = !self.announce(memory, first).await.is_empty();
                    if is_left || self.missed.swap(false, Ordering::AcqRel) {
                        next = next.min(Instant::now() + DOUBT);
                    }
                    if std::mem::take(&mut memory.is_lost) {
                        next = Instant::now();
                    }
                    if count > 0 && Instant::now() < next {
                        continue;
                    }
                }
                () = tokio::time::sleep_until(next) => {}
            }
            if !self.bus.is_connected() {
                return;
            }
            next = match self.look(memory).await {
                Ok(sooner) => {
                    memory.failures = 0;
                    let usual = Instant::now() + self.every;
                    sooner.map_or(usual, |sooner| sooner.min(usual))
                }
                Err(trouble) => {
                    memory.failures += 1;
                    match &trouble {
                        ScanError::Bus(error) => complain(memory.failures, error),
                        ScanError::Store(error) => complain(memory.failures, error),
                    }
                    Instant::now() + RETRY.delay(memory.failures).max(DOUBT)
                }
            };
        }
    }

    /// Publishes announcements. Returns those that failed and those whose ID the stream already
    /// had.
    async fn announce(
        &self,
        memory: &mut Memory,
        wanted: Vec<(PendingAnnouncement, u32)>,
    ) -> Vec<(PendingAnnouncement, NotStored)> {
        let mut left = Vec::new();
        for (note, _) in &wanted {
            self.ensure_readers(memory, &note.pool).await;
        }
        for batch in wanted.chunks(BATCH) {
            let message =
                |(note, number): &(PendingAnnouncement, u32)| self.routes.message(note, *number);
            let mut answers = self.bus.publish(batch.iter().map(message).collect()).await;
            if answers.contains(&Err(PublishError::NoStream)) {
                warn!("command stream is missing, recreating it");
                memory.is_lost = true;
                if self.bus.ensure(&self.routes.settings()).await.is_ok() {
                    // The stream deduplicates announcements it stored before.
                    answers = self.bus.publish(batch.iter().map(message).collect()).await;
                }
            }
            for ((note, _), answer) in batch.iter().zip(answers) {
                match answer {
                    Ok(PublishAck::New) => self.metrics.commands_announced.inc(),
                    Ok(PublishAck::Known) => left.push((note.clone(), NotStored::Taken)),
                    Err(error) => {
                        if error.is_own_fault() {
                            let command = note.command;
                            warn!(command.id = %command, %error, "failed to announce command");
                        }
                        left.push((note.clone(), NotStored::Lost));
                    }
                }
            }
        }
        left
    }

    /// Creates the consumers of a pool if it is new to this connection.
    async fn ensure_readers(&self, memory: &mut Memory, pool: &str) {
        let pool = segment(pool);
        if memory.ensured.contains(&*pool) || memory.ensured.len() >= POOLS_MAX {
            return;
        }
        match self.bus.ensure(&self.routes.settings_for(&pool)).await {
            Ok(()) => drop(memory.ensured.insert(Arc::from(&*pool))),
            Err(error) => warn!(%pool, %error, "failed to create consumers of pool"),
        }
    }

    /// Compares pending commands with the backlog and announces the missing ones. Returns the time
    /// of the next scan if it has to be sooner than usual.
    async fn look(&self, memory: &mut Memory) -> Result<Option<Instant>, ScanError> {
        let found = self.bus.state(STREAM).await?;
        let waiting = self.waiting().await?;
        if let Some(found) = found {
            self.discard_overtaken(memory, &found, &waiting).await;
        }
        if waiting.is_empty() {
            memory.tries.clear();
            return Ok(None);
        }
        let readers = self.readers(memory, &waiting).await?;
        let short: HashMap<&str, u64> = waiting
            .iter()
            .map(|(pool, count)| (&**pool, *count, self.routes.backlog(pool, &readers)))
            .filter(|(_, count, backlog)| backlog < count)
            .map(|(pool, _, backlog)| (pool, backlog))
            .collect();
        if short.is_empty() {
            return Ok(None);
        }
        let now = Instant::now();
        for database in &self.databases {
            self.announce_waiting(memory, &**database, &short, now).await?;
        }
        Ok(memory.tries.end(now))
    }

    /// Returns the number of pending commands by the segment of their pool. Pools whose names
    /// differ only in characters that a subject cannot contain share a segment, and so their
    /// announcements.
    async fn waiting(&self) -> Result<BTreeMap<Arc<str>, u64>, StoreError> {
        let mut waiting: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        let (mut answered, mut failed) = (false, None);
        for database in &self.databases {
            match database.pending_by_pool().await {
                Ok(pools) => {
                    answered = true;
                    for (pool, count) in pools {
                        let segment = match segment(&pool) {
                            Cow::Borrowed(_) => pool,
                            Cow::Owned(segment) => Arc::from(segment),
                        };
                        *waiting.entry(segment).or_default() += count;
                    }
                }
                // Commands of the other databases are announced all the same.
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if !answered => Err(error),
            Some(_) | None => Ok(waiting),
        }
    }

    /// Returns the consumers of the stream. First recreates missing ones and corrects those with
    /// the wrong filter.
    async fn readers(
        &self,
        memory: &mut Memory,
        waiting: &BTreeMap<Arc<str>, u64>,
    ) -> Result<Vec<ConsumerState>, BusError> {
        let found = self.bus.state(STREAM).await?;
        let readers = found.as_ref().map(|found| &found.consumers[..]).unwrap_or_default();
        let is_whole = Routes::pools().iter().all(|pool| self.routes.has_consumers(pool, readers));
        if found.is_none() || !is_whole {
            info!("recreating command stream or its consumers");
            self.bus.ensure(&self.routes.settings()).await?;
        }
        let mut is_lost = false;
        for pool in waiting.keys() {
            if !self.routes.has_consumers(pool, readers) {
                memory.ensured.remove(pool);
                self.ensure_readers(memory, pool).await;
            }
            is_lost |= self.correct_readers(pool, readers).await?;
        }
        let Some(found) = self.bus.state(STREAM).await? else { return Ok(Vec::new()) };
        // If the stream is a new one, the announcements of the old one are gone, whichever process
        // deleted or recreated it.
        is_lost |= memory.stream.replace(found.made).is_some_and(|before| before != found.made);
        if is_lost {
            memory.tries.retry_now(Instant::now());
        }
        Ok(found.consumers)
    }

    /// Corrects consumers of a pool that receive nothing. A published worker that starts before the
    /// stream exists creates its consumer itself, with a filter that matches no announcement.
    /// Returns `true` if any consumer was corrected.
    async fn correct_readers(
        &self,
        pool: &str,
        readers: &[ConsumerState],
    ) -> Result<bool, BusError> {
        let misled = self.routes.misfiltered_consumers(pool, readers);
        for consumer in &misled {
            let (name, filter) = (&consumer.name, &consumer.filter);
            warn!(
                %pool, consumer = name, filter,
                "correcting filter of consumer that receives no announcements"
            );
            self.bus.redirect(STREAM, consumer).await?;
        }
        Ok(!misled.is_empty())
    }

    /// Announces the pending commands of one database whose pools lack announcements.
    async fn announce_waiting(
        &self,
        memory: &mut Memory,
        database: &dyn PublishingStore,
        short: &HashMap<&str, u64>,
        now: Instant,
    ) -> Result<(), StoreError> {
        let mut after = CommandId::new(i64::MIN);
        loop {
            let open = database.open_commands(after, PAGE).await?;
            let Some(last) = open.last() else { return Ok(()) };
            after = last.id;
            let mut due = Vec::new();
            for row in open.iter().filter(|row| row.state == CommandState::Pending) {
                if !short.contains_key(&*segment(&row.pool)) || !compat::has_kind(&row.tool) {
                    continue;
                }
                if let Some(number) = memory.tries.due(row.id, now) {
                    due.push((PendingAnnouncement::from_row(row), number));
                }
            }
            self.announce_due(memory, due, short).await;
        }
    }

    /// Announces commands again. If the stream already knows a number and the pool's backlog is
    /// empty, that announcement is consumed, and the next number is used. If the backlog is not
    /// empty, it may contain the announcement, which is then still delivered.
    async fn announce_due(
        &self,
        memory: &mut Memory,
        mut due: Vec<(PendingAnnouncement, u32)>,
        short: &HashMap<&str, u64>,
    ) {
        self.metrics.commands_announced_again.inc_by(due.len() as u64);
        for _ in 0..TAKEN_MAX {
            if due.is_empty() {
                return;
            }
            let left = self.announce(memory, due).await;
            let is_over = |note: &PendingAnnouncement| short.get(&*segment(&note.pool)) == Some(&0);
            due = left
                .into_iter()
                .filter(|(note, answer)| *answer == NotStored::Taken && is_over(note))
                .map(|(note, _)| {
                    let number = memory.tries.skip(note.command);
                    (note, number)
                })
                .collect();
        }
    }
}

/// Reason an announcement was not stored as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotStored {
    /// The stream already has an announcement with this ID.
    Taken,
    /// Publishing failed, or its outcome is unknown.
    Lost,
}

fn complain(failures: u32, error: &dyn std::error::Error) {
    if failures == 1 {
        warn!(%error, "failed to announce commands, retrying");
    }
}

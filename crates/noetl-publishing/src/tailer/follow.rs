//! Reads and publishes rows during one term of the lease.

use std::collections::BTreeMap;

use futures::future::join_all;
use noetl_store::tail::Lane;
use noetl_store::{CursorUpdate, StoreError};
use tracing::warn;

use super::lease::TailerLease;
use super::page::{CursorSource, Page, RejectedRows};
use super::{NAME, Tailer};
use crate::event_stream::{RETRY, payload_limit};

pub(super) enum FollowExit {
    /// Another process holds the lease.
    Fenced,
    BusAway,
}

/// Published position by source.
type Cursors = BTreeMap<CursorSource, i64>;

enum FollowError {
    Fenced,
    Store(StoreError),
}

impl From<StoreError> for FollowError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Tailer {
    /// Publishes committed rows until the lease, the store, or the bus fails.
    pub(super) async fn follow(&self, held: &TailerLease) -> Result<FollowExit, StoreError> {
        match self.publish_all(held).await {
            Ok(followed) => Ok(followed),
            Err(FollowError::Fenced) => Ok(FollowExit::Fenced),
            Err(FollowError::Store(error)) => Err(error),
        }
    }

    async fn publish_all(&self, held: &TailerLease) -> Result<FollowExit, FollowError> {
        let mut at = self.cursors(held).await?;
        let mut refused = RejectedRows::default();
        let mut woken = self.woken.clone();
        let mut failures: u32 = 0;
        let mut is_ensured = false;
        let mut read_ahead: Option<Page> = None;
        loop {
            let mut page = match read_ahead.take() {
                Some(page) => page,
                None => {
                    woken.borrow_and_update();
                    self.read(&at, &refused).await?
                }
            };
            self.metrics.set_oldest(&self.database, page.oldest);
            if !self.bus.is_connected() {
                return Ok(FollowExit::BusAway);
            }
            if !is_ensured {
                if let Err(error) = self.bus.ensure(&self.options.stream()).await {
                    failures += 1;
                    self.complain(failures, &error);
                    tokio::time::sleep(RETRY.delay(failures)).await;
                    continue;
                }
                is_ensured = true;
            }
            if page.is_empty() {
                // Rows without a commit lane come from an adopted database, and no more of them
                // appear.
                if at.remove(&CursorSource::Adopted).is_some() {
                    continue;
                }
                tokio::select! {
                    () = tokio::time::sleep(self.options.poll) => {}
                    // A closed sender sends no more notifications.
                    Ok(()) = woken.changed() => {}
                }
                continue;
            }
            if !held.is_valid() {
                return Ok(FollowExit::Fenced);
            }
            let mut ahead = at.clone();
            ahead.extend(page.ends());
            woken.borrow_and_update();
            let messages = page.messages();
            let (answers, next) =
                tokio::join!(self.bus.publish(messages), self.read(&ahead, &refused));
            let outcome = page.outcome(answers, &mut refused, &self.metrics);
            self.advance(held, &outcome.reached).await?;
            at.extend(outcome.reached);
            if outcome.is_complete {
                failures = 0;
                read_ahead = Some(next?);
                continue;
            }
            is_ensured &= !outcome.has_no_stream;
            failures += 1;
            if let Some(error) = &outcome.error {
                self.complain(failures, error);
            }
            tokio::time::sleep(RETRY.delay(failures)).await;
        }
    }

    /// Logs the first of consecutive failures only.
    fn complain(&self, failures: u32, error: &dyn std::error::Error) {
        if failures == 1 {
            let database = &*self.database;
            warn!(database, %error, "event publishing failed, retrying");
        }
    }

    /// Returns the start position of every commit lane: its cursor, or else the latest or first
    /// position. A new cursor is stored at once, so a restart does not skip rows committed since.
    async fn cursors(&self, held: &TailerLease) -> Result<Cursors, FollowError> {
        let mut at = Cursors::new();
        for Lane { number, newest } in self.store.lanes().await? {
            let first = if self.options.backfill { 0 } else { newest };
            at.insert(
                CursorSource::Lane(number),
                self.cursor(held, CursorSource::Lane(number), first).await?,
            );
        }
        // Rows without a commit lane predate all others and are published first.
        let first = if self.options.backfill { i64::MIN } else { i64::MAX };
        at.insert(CursorSource::Adopted, self.cursor(held, CursorSource::Adopted, first).await?);
        Ok(at)
    }

    async fn cursor(
        &self,
        held: &TailerLease,
        source: CursorSource,
        first: i64,
    ) -> Result<i64, FollowError> {
        let name = name(source);
        let at = match self.store.cursor(&name).await? {
            Some(at) => at,
            None => {
                self.advance_one(held, &name, first).await?;
                first
            }
        };
        self.metrics.set_cursor(&self.database, &name, at);
        Ok(at)
    }

    /// Reads the next rows of every source. The batch size is divided among the sources that have
    /// any.
    async fn read(&self, at: &Cursors, refused: &RejectedRows) -> Result<Page, StoreError> {
        let limit = payload_limit(&*self.bus);
        let mut page = Page::default();
        if let Some(&after) = at.get(&CursorSource::Adopted)
            && after < i64::MAX
        {
            let rows = self.store.tail_adopted(after, self.options.batch).await?;
            if !rows.is_empty() {
                page.add(CursorSource::Adopted, rows, limit, refused, &self.metrics);
                return Ok(page);
            }
        }
        let lanes = self.store.lanes().await?;
        let has_more = |lane: &&Lane| {
            at.get(&CursorSource::Lane(lane.number)).is_some_and(|after| *after < lane.newest)
        };
        let waiting: Vec<u16> = lanes.iter().filter(has_more).map(|lane| lane.number).collect();
        let share = (self.options.batch / waiting.len().max(1)).max(1);
        let reads = waiting.iter().map(|&lane| {
            let after = at.get(&CursorSource::Lane(lane)).copied().unwrap_or(i64::MAX);
            self.store.tail(lane, after, share)
        });
        for (&lane, rows) in waiting.iter().zip(join_all(reads).await) {
            page.add(CursorSource::Lane(lane), rows?, limit, refused, &self.metrics);
        }
        Ok(page)
    }

    async fn advance(&self, held: &TailerLease, reached: &Cursors) -> Result<(), FollowError> {
        let moves = reached.iter().map(|(&source, &position)| async move {
            let name = name(source);
            self.advance_one(held, &name, position).await?;
            self.metrics.set_cursor(&self.database, &name, position);
            Ok(())
        });
        join_all(moves).await.into_iter().collect()
    }

    async fn advance_one(
        &self,
        held: &TailerLease,
        name: &str,
        position: i64,
    ) -> Result<(), FollowError> {
        match self.store.advance(name, position, Some(&held.lease)).await? {
            CursorUpdate::Moved | CursorUpdate::Kept => Ok(()),
            CursorUpdate::Fenced => Err(FollowError::Fenced),
        }
    }
}

fn name(source: CursorSource) -> String {
    match source {
        CursorSource::Lane(0) => NAME.to_owned(),
        CursorSource::Lane(number) => format!("{NAME}:{number}"),
        CursorSource::Adopted => format!("{NAME}:adopted"),
    }
}

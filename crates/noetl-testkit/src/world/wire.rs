//! The way of one process to the database, with everything that can happen on it.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Event, ExecutionId, Seq};
use noetl_store::{Append, Committed, EventLog, Held, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::fault::Fault;
use super::scene::Scene;
use crate::store::Line;

type Commit = (Vec<Append>, oneshot::Sender<Result<Vec<Committed>, StoreError>>);

/// What may happen before a call is done.
const BEFORE: [Fault; 5] =
    [Fault::Slow, Fault::Refused, Fault::CallLost, Fault::CrashBefore, Fault::Frozen];
/// What may happen after it.
const AFTER: [Fault; 3] = [Fault::Slow, Fault::AnswerLost, Fault::CrashAfter];

/// One process's way.
pub(crate) struct Wire {
    ends: Ends,
    commits: mpsc::UnboundedSender<Commit>,
}

/// What every call on it needs.
#[derive(Clone)]
struct Ends {
    scene: Arc<Scene>,
    life: u64,
    who: Arc<str>,
}

impl Wire {
    #[expect(
        clippy::disallowed_methods,
        reason = "a journal has a few commits under way at most, and sends them without waiting"
    )]
    pub(crate) fn new(scene: &Arc<Scene>, life: u64, who: &str) -> Self {
        let ends = Ends { scene: scene.clone(), life, who: who.into() };
        let (commits, queue) = mpsc::unbounded_channel();
        tokio::spawn(ends.clone().commit_in_turn(queue));
        Self { ends, commits }
    }
}

impl Ends {
    /// Lets a call get to the database, or not.
    async fn before(&self, what: &str) -> Result<(), StoreError> {
        self.scene.gate(self.life).await;
        // Most calls take no time that counts; some take long enough for others to come between.
        let takes = self.scene.between(0, 9);
        match takes {
            0..=4 => {}
            5..=7 => tokio::task::yield_now().await,
            _ => tokio::time::sleep(self.scene.millis(1, 4)).await,
        }
        self.scene.gate(self.life).await;
        if self.scene.is_away() {
            return Err(StoreError::backend("answer", "it is away"));
        }
        match self.scene.fault(&self.who, &BEFORE) {
            Some(Fault::Slow) => self.wait(what).await,
            Some(Fault::Refused) => return Err(StoreError::backend("answer", "it refuses")),
            Some(Fault::CallLost) => return Err(StoreError::Unknown("the call was lost".into())),
            Some(Fault::Frozen) => {
                let lasts = self.scene.millis(100, 90_000);
                self.scene.freeze(self.life, lasts);
                self.scene.gate(self.life).await;
            }
            Some(_) => self.crash(what).await,
            None => {}
        }
        Ok(())
    }

    /// Lets an answer get back, or not.
    async fn after(&self, what: &str) -> Result<(), StoreError> {
        self.scene.gate(self.life).await;
        match self.scene.fault(&self.who, &AFTER) {
            Some(Fault::Slow) => self.wait(what).await,
            Some(Fault::AnswerLost) => {
                self.scene.note(&self.who, &format!("  the answer to {what} is lost"));
                return Err(StoreError::Unknown("the answer was lost".into()));
            }
            Some(_) => self.crash(what).await,
            None => {}
        }
        self.scene.gate(self.life).await;
        Ok(())
    }

    async fn wait(&self, what: &str) {
        let lasts = self.scene.millis(20, 8_000);
        self.scene.note(&self.who, &format!("  {what} takes {} ms", lasts.as_millis()));
        tokio::time::sleep(lasts).await;
    }

    async fn crash(&self, what: &str) {
        self.scene.note(&self.who, &format!("  dies at {what}"));
        self.scene.end_life(self.life);
        std::future::pending().await
    }

    /// One after the other, in the order they were asked for.
    async fn commit_in_turn(self, mut queue: mpsc::UnboundedReceiver<Commit>) {
        while let Some((batch, reply)) = queue.recv().await {
            // Whoever asked may be gone; what it asked for is done all the same.
            let _ = reply.send(self.commit(batch, false).await);
        }
    }

    async fn commit(&self, batch: Vec<Append>, holds: bool) -> Result<Vec<Committed>, StoreError> {
        self.before("commit").await?;
        if !holds {
            self.scene.unheld(&batch).await;
            self.scene.gate(self.life).await;
        }
        let outcomes = self.scene.write(&self.who, batch)?;
        self.after("commit").await?;
        Ok(outcomes)
    }
}

#[async_trait]
impl Line for Wire {
    async fn asks(&self, what: &'static str) -> Result<(), StoreError> {
        self.ends.before(what).await
    }

    async fn answered(
        &self,
        what: &'static str,
        answer: &mut (dyn Any + Send),
    ) -> Result<(), StoreError> {
        if what == "say_work_left" && self.ends.scene.fault("bus", &[Fault::WordLost]).is_none() {
            self.ends.scene.words.send_modify(|count| *count += 1);
        }
        if let Some(defect) = &mut self.ends.scene.lock().defect {
            defect.answer(what, answer);
        }
        self.ends.after(what).await
    }

    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let lost = || StoreError::backend("commit", "the connection is gone");
        self.commits.send((batch, reply)).map_err(|_| lost())?;
        answer.await.map_err(|_| lost())?
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn Held + '_>, StoreError> {
        self.ends.scene.hold(execution, self.ends.life).await;
        Ok(Box::new(Holding { ends: self.ends.clone(), execution }))
    }

    async fn others_left_work(&self) {
        // The sender is the world's own.
        let _ = self.ends.scene.words.subscribe().changed().await;
        self.ends.scene.gate(self.ends.life).await;
    }
}

/// An execution that nobody else appends to.
struct Holding {
    ends: Ends,
    execution: ExecutionId,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.ends.scene.let_go(self.execution, self.ends.life);
    }
}

#[async_trait]
impl Held for Holding {
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.ends.before("read what is held").await?;
        let read = self.ends.scene.store.read(self.execution, after, limit).await?;
        self.ends.after("read what is held").await?;
        Ok(read)
    }

    async fn commit(self: Box<Self>, append: Append) -> Result<Committed, StoreError> {
        let outcomes = self.ends.commit(vec![append], true).await?;
        let first = outcomes.into_iter().next();
        first.ok_or_else(|| StoreError::backend("commit", "no answer for an item"))
    }
}

//! Connection of one process to the database, with the faults of its calls.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Event, ExecutionId, Seq};
use noetl_store::{Append, Committed, EventLog, LockedLog, StoreError};
use noetl_test_app::CallInterceptor;
use tokio::sync::{mpsc, oneshot};

use super::fault::Fault;
use super::scene::Scene;

type Commit = (Vec<Append>, oneshot::Sender<Result<Vec<Committed>, StoreError>>);

const BEFORE: [Fault; 5] =
    [Fault::Slow, Fault::Refused, Fault::CallLost, Fault::CrashBefore, Fault::Frozen];
const AFTER: [Fault; 3] = [Fault::Slow, Fault::AnswerLost, Fault::CrashAfter];

pub(crate) struct Connection {
    calls: Calls,
    commits: mpsc::UnboundedSender<Commit>,
}

#[derive(Clone)]
struct Calls {
    scene: Arc<Scene>,
    life: u64,
    who: Arc<str>,
}

impl Connection {
    #[expect(
        clippy::disallowed_methods,
        reason = "a journal has few commits in flight, and sends them without waiting"
    )]
    pub(crate) fn new(scene: &Arc<Scene>, life: u64, who: &str) -> Self {
        let calls = Calls { scene: scene.clone(), life, who: who.into() };
        let (commits, queue) = mpsc::unbounded_channel();
        tokio::spawn(calls.clone().commit_in_order(queue));
        Self { calls, commits }
    }
}

impl Calls {
    /// Delays a call, fails it, or kills the process before it.
    async fn before(&self, what: &str) -> Result<(), StoreError> {
        self.scene.gate(self.life).await;
        // Most calls take no simulated time; some take long enough for others to interleave.
        let takes = self.scene.between(0, 9);
        match takes {
            0..=4 => {}
            5..=7 => tokio::task::yield_now().await,
            _ => tokio::time::sleep(self.scene.millis(1, 4)).await,
        }
        self.scene.gate(self.life).await;
        if self.scene.is_away() {
            return Err(StoreError::backend("answer", "the database is unavailable"));
        }
        match self.scene.fault(&self.who, &BEFORE) {
            Some(Fault::Slow) => self.wait(what).await,
            Some(Fault::Refused) => {
                return Err(StoreError::backend("answer", "the database rejects the call"));
            }
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

    /// Delays a response, drops it, or kills the process after the call.
    async fn after(&self, what: &str) -> Result<(), StoreError> {
        self.scene.gate(self.life).await;
        match self.scene.fault(&self.who, &AFTER) {
            Some(Fault::Slow) => self.wait(what).await,
            Some(Fault::AnswerLost) => {
                self.scene.note(&self.who, &format!("  the response to {what} is lost"));
                return Err(StoreError::Unknown("the response was lost".into()));
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

    /// Commits batches in the order of the calls.
    async fn commit_in_order(self, mut queue: mpsc::UnboundedReceiver<Commit>) {
        while let Some((batch, reply)) = queue.recv().await {
            // The batch is written even if the caller is gone.
            let _ = reply.send(self.commit(batch, false).await);
        }
    }

    async fn commit(
        &self,
        batch: Vec<Append>,
        is_locked: bool,
    ) -> Result<Vec<Committed>, StoreError> {
        self.before("commit").await?;
        if !is_locked {
            self.scene.unlocked(&batch).await;
            self.scene.gate(self.life).await;
        }
        let outcomes = self.scene.write(&self.who, batch)?;
        self.after("commit").await?;
        Ok(outcomes)
    }
}

#[async_trait]
impl CallInterceptor for Connection {
    async fn before_call(&self, method: &'static str) -> Result<(), StoreError> {
        self.calls.before(method).await
    }

    async fn after_call(
        &self,
        method: &'static str,
        response: &mut (dyn Any + Send),
    ) -> Result<(), StoreError> {
        if method == "say_work_left" && self.calls.scene.fault("bus", &[Fault::WordLost]).is_none()
        {
            self.calls.scene.words.send_modify(|count| *count += 1);
        }
        if let Some(defect) = &mut self.calls.scene.lock().defect {
            defect.answer(method, response);
        }
        self.calls.after(method).await
    }

    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        let (reply, response) = oneshot::channel();
        let lost = || StoreError::backend("commit", "the connection is closed");
        self.commits.send((batch, reply)).map_err(|_| lost())?;
        response.await.map_err(|_| lost())?
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError> {
        self.calls.scene.hold(execution, self.calls.life).await;
        Ok(Box::new(ExecutionLock { calls: self.calls.clone(), execution }))
    }

    async fn others_left_work(&self) {
        // The scene owns the sender.
        let _ = self.calls.scene.words.subscribe().changed().await;
        self.calls.scene.gate(self.calls.life).await;
    }
}

struct ExecutionLock {
    calls: Calls,
    execution: ExecutionId,
}

impl Drop for ExecutionLock {
    fn drop(&mut self) {
        self.calls.scene.let_go(self.execution, self.calls.life);
    }
}

#[async_trait]
impl LockedLog for ExecutionLock {
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.calls.before("read of a locked execution").await?;
        let read = self.calls.scene.store.read(self.execution, after, limit).await?;
        self.calls.after("read of a locked execution").await?;
        Ok(read)
    }

    async fn commit(self: Box<Self>, append: Append) -> Result<Committed, StoreError> {
        let outcomes = self.calls.commit(vec![append], true).await?;
        let first = outcomes.into_iter().next();
        first.ok_or_else(|| StoreError::backend("commit", "no outcome for an item"))
    }
}

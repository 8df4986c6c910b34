//! Starts scheduled runs that are due. Every process does: the first one fixes the execution ID of
//! a run, and all start that execution, which begins once. After a crash, the row is still due.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use noetl_engine::Rejection;
use noetl_journal::{PreassignedId, StartError, SubmitError};
use noetl_model::{ExecutionId, Timestamp};
use noetl_playbook::schedule::{MissedRunPolicy, OverlapPolicy};
use noetl_store::{ExecutionFilter, ExecutionStatus, ScheduleRow, StoreError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::plan::SchedulePlan;
use super::{Schedules, parent, request};

/// Schedules processed at a time, besides those that wait.
const PAGE: usize = 100;

/// Maximum pause between checks. Finds rows written by other processes.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Retry delay after a failure.
const REST: Duration = Duration::from_secs(10);

/// Poll interval while a run waits for an earlier one to end.
const WAITING_LOOK: Duration = Duration::from_secs(2);

/// Maximum delay of a run under `missed: skip`.
const LATE_MAX: Duration = Duration::from_secs(60);

/// Maximum number of overlapping runs considered.
const OVERLAPS_MAX: usize = 100;

/// Outcome of processing a due schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dealt {
    /// The schedule is no longer due, or another process handles it.
    Done,
    /// The run waits for an earlier one.
    Waits,
    /// The attempt failed and is retried.
    Again,
}

/// Background task that starts due runs.
pub(crate) struct Runner {
    schedules: Schedules,
    closing: CancellationToken,
    /// Number of schedules found waiting. Added to the page size, so they do not block others.
    waiting: AtomicUsize,
}

impl Runner {
    pub(crate) fn new(schedules: Schedules, closing: CancellationToken) -> Self {
        Self { schedules, closing, waiting: AtomicUsize::new(0) }
    }

    pub(crate) async fn run(self) {
        let changed = self.schedules.rows.changed.clone();
        loop {
            let pause = match self.pass().await {
                Ok(pause) => pause,
                Err(error) => {
                    warn!(%error, "failed to read schedules, retrying");
                    REST
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = changed.notified() => {}
                () = self.closing.cancelled() => return,
            }
        }
    }

    /// Starts due runs once. Returns the time until there is more to do.
    async fn pass(&self) -> Result<Duration, StoreError> {
        let store = &self.schedules.rows.store;
        let Some(next) = store.next_schedule().await? else { return Ok(LOOK_EVERY) };
        let wait = next.since(self.now());
        if !wait.is_zero() {
            return Ok(wait.min(LOOK_EVERY));
        }
        let most = PAGE + self.waiting.load(Ordering::Relaxed);
        let rows = store.ready_schedules(most).await?;
        if rows.is_empty() {
            // The store's clock is behind this process's, or another process handled it.
            return Ok(Duration::from_secs(1));
        }
        let dealt = rows.iter().map(|row| self.schedules.deal(row));
        let dealt = futures::future::join_all(dealt).await;
        let count = |with: Dealt| dealt.iter().filter(|dealt| **dealt == with).count();
        self.waiting.store(count(Dealt::Waits), Ordering::Relaxed);
        Ok(match (count(Dealt::Done), count(Dealt::Waits)) {
            (0, 0) => REST,
            (0, _) => WAITING_LOOK,
            _ => Duration::ZERO,
        })
    }

    fn now(&self) -> Timestamp {
        self.schedules.rows.clock.now()
    }
}

impl Schedules {
    /// Starts due runs once. Returns the time until there is more to do. The background task does
    /// this continuously; call it directly after moving a simulated clock.
    pub async fn start_due(&self) -> Result<Duration, StoreError> {
        Runner::new(self.clone(), CancellationToken::new()).pass().await
    }

    async fn deal(&self, row: &ScheduleRow) -> Dealt {
        match self.start_one(row).await {
            Ok(dealt) => dealt,
            Err(error) => {
                warn!(schedule.id = %row.schedule.id, %error, "failed to start scheduled run, retrying");
                Dealt::Again
            }
        }
    }

    async fn start_one(&self, row: &ScheduleRow) -> Result<Dealt, StartError> {
        let Some(due) = row.schedule.next_run_at else { return Ok(Dealt::Done) };
        let plan = match SchedulePlan::from_row(row) {
            Ok(plan) => plan,
            Err(why) => return self.move_on(row, due, None, &format!("failed: {why}")).await,
        };
        let now = self.rows.clock.now();
        // A writer that had read the row before that run reset its time. Runs only move forward.
        if let Some(last) = row.last_run_at.filter(|last| *last >= due) {
            let status = row.last_status.clone().unwrap_or_default();
            return self.move_on(row, due, plan.when.next(due, last.max(now)), &status).await;
        }
        let following = plan.when.next(due, due);
        // A run with a fixed execution ID is started, however late.
        if plan.missed == MissedRunPolicy::Skip && row.run.is_none() {
            let step = following.map_or(LATE_MAX, |next| next.since(due));
            if now.since(due) > LATE_MAX.min(step) {
                return self.move_on(row, due, plan.when.next(due, now), "skipped_missed").await;
            }
        }
        let next = match plan.missed {
            MissedRunPolicy::All => following,
            MissedRunPolicy::One | MissedRunPolicy::Skip => plan.when.next(due, now),
        };
        let Some(execution) = self.fix(row, due).await? else { return Ok(Dealt::Done) };
        let known = self.rows.store.tenant_of(execution).await.map_err(StartError::Store)?;
        if known.is_some() {
            return self.move_on(row, due, next, "started").await;
        }
        if plan.overlap != OverlapPolicy::Allow {
            let earlier = self.earlier(row, execution).await?;
            match plan.overlap {
                OverlapPolicy::Skip if !earlier.is_empty() => {
                    return self.move_on(row, due, next, "skipped_overlap").await;
                }
                OverlapPolicy::Queue if !earlier.is_empty() => return Ok(Dealt::Waits),
                OverlapPolicy::CancelPrevious => self.cancel(row, &earlier).await?,
                _ => {}
            }
        }
        // Checked again, because the schedule may have been advanced, paused, or deleted in the
        // meantime.
        if self.fix(row, due).await? != Some(execution) {
            return Ok(Dealt::Done);
        }
        self.start(row, due, execution, next).await
    }

    async fn start(
        &self,
        row: &ScheduleRow,
        due: Timestamp,
        execution: ExecutionId,
        next: Option<Timestamp>,
    ) -> Result<Dealt, StartError> {
        // Every process that starts it uses the same key.
        let fixed = PreassignedId { execution, key: execution.get().cast_unsigned() };
        let started = match self.executions.prepare(&row.tenant, request(row, Some(due))).await {
            Ok(ready) => self.executions.start_as(&row.tenant, &ready, fixed).await,
            Err(error) => Err(error),
        };
        let status = match started {
            Ok(_)
            | Err(StartError::Submit(
                SubmitError::Taken | SubmitError::Refused(Rejection::AlreadyStarted),
            )) => {
                info!(schedule.id = %row.schedule.id, execution.id = %execution, due = %due, "scheduled run started");
                "started".to_owned()
            }
            // A retry would fail as well. The failure is recorded, and the schedule advances.
            Err(StartError::NotFound(why)) => format!("failed: {why}"),
            Err(StartError::Submit(SubmitError::Refused(Rejection::Workload(why)))) => {
                format!("failed: {why}")
            }
            Err(StartError::Playbook(_)) => {
                format!("failed: the playbook '{}' has errors", row.schedule.path)
            }
            Err(error) => return Err(error),
        };
        self.move_on(row, due, next, &status).await
    }

    /// Returns the execution ID of a run: the first that any process fixed, or `None` if the run is
    /// no longer due.
    async fn fix(
        &self,
        row: &ScheduleRow,
        due: Timestamp,
    ) -> Result<Option<ExecutionId>, StartError> {
        self.rows.ids.ensure_leased().map_err(StartError::Store)?;
        let mine = row.run.unwrap_or_else(|| self.rows.ids.execution());
        let fixed = self.rows.store.fix_run(&row.tenant, row.schedule.id, due, mine).await;
        fixed.map_err(StartError::Store)
    }

    async fn move_on(
        &self,
        row: &ScheduleRow,
        due: Timestamp,
        next: Option<Timestamp>,
        status: &str,
    ) -> Result<Dealt, StartError> {
        let moved = self.rows.store.move_on(&row.tenant, row.schedule.id, due, next, status).await;
        // If another process advanced the schedule, that process counts the run.
        if moved.map_err(StartError::Store)? {
            self.count(due, status);
        }
        Ok(Dealt::Done)
    }

    fn count(&self, due: Timestamp, status: &str) {
        let outcome = match status.split(':').next().unwrap_or_default() {
            "started" => "started",
            "skipped_missed" => "skipped_missed",
            "skipped_overlap" => "skipped_overlap",
            _ => "failed",
        };
        self.metrics.schedule_runs.with_label_values(&[outcome]).inc();
        if outcome == "started" {
            let late = self.rows.clock.now().since(due);
            self.metrics.schedule_delay_seconds.observe(late.as_secs_f64());
        }
    }

    /// Returns the running executions of a schedule, except this one.
    async fn earlier(
        &self,
        row: &ScheduleRow,
        execution: ExecutionId,
    ) -> Result<Vec<ExecutionId>, StartError> {
        let filter = ExecutionFilter {
            parent: Some(parent(row.schedule.id)),
            status: Some(ExecutionStatus::Running),
            limit: OVERLAPS_MAX,
            ..ExecutionFilter::default()
        };
        let running = self.executions.list(&row.tenant, &filter).await;
        let running = running.map_err(StartError::Store)?.into_iter().map(|row| row.id);
        Ok(running.filter(|id| *id != execution).collect())
    }

    async fn cancel(&self, row: &ScheduleRow, earlier: &[ExecutionId]) -> Result<(), StartError> {
        let reason = format!("the next run of schedule {} is due", row.schedule.id);
        for id in earlier {
            match self.executions.cancel(&row.tenant, *id, Some(reason.clone())).await {
                // The execution ended in the meantime.
                Ok(()) | Err(SubmitError::Refused(_)) => {}
                Err(error) => return Err(StartError::Submit(error)),
            }
        }
        Ok(())
    }
}

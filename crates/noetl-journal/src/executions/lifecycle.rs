//! Cancels one or many executions, and reruns an execution.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use noetl_engine::{Cancel, Input, Rejection};
use noetl_model::event::ExecutionStart as Beginning;
use noetl_model::{ExecutionId, Fact, Map, Seq, Tenant};
use noetl_store::{ExecutionFilter, ExecutionStatus, StoreError};

use super::{Executions, ForkError, StartRequest, StartedExecution};
use crate::journal::SubmitError;
use crate::traces::TraceParent;

/// Descendants visited by one call. A step that waits for a child beyond the limit still cancels
/// it, with the message that the end of the step sends.
const DESCENDANTS_MAX: usize = 10_000;

/// Executions that one cleanup cancels at most. Repeat the call to cancel more.
pub const CLEANED_MAX: usize = 500;

/// Rows read at a time.
const PAGE: usize = 100;

impl Executions {
    /// Cancels an execution at once. Stops its running commands; their late completions change
    /// nothing.
    pub async fn cancel(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        reason: Option<String>,
    ) -> Result<(), SubmitError> {
        let row = self.get(tenant, id).await;
        if row.map_err(|error| SubmitError::Store(Arc::new(error)))?.is_none() {
            return Err(SubmitError::Refused(Rejection::NotFound));
        }
        self.journal.submit(id, self.cancellation(reason)).await.map(|_| ())
    }

    fn cancellation(&self, reason: Option<String>) -> Input {
        Input::Cancel(Cancel { reason, actor: self.actor.clone() })
    }

    /// Cancels all running descendants of an execution and returns their IDs. After an error, a
    /// repeated call continues: it skips executions that have ended, but still visits their
    /// descendants.
    pub async fn cancel_descendants(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        reason: Option<String>,
    ) -> Result<Vec<ExecutionId>, SubmitError> {
        let failed = |error| SubmitError::Store(Arc::new(error));
        let reason = reason.unwrap_or_else(|| format!("execution {id} was cancelled"));
        let mut cancelled = Vec::new();
        let mut above = VecDeque::from([id]);
        let mut seen = 0;
        while let Some(parent) = above.pop_front() {
            let mut offset = 0;
            loop {
                let filter = ExecutionFilter {
                    parent: Some(parent),
                    offset,
                    limit: PAGE,
                    ..ExecutionFilter::default()
                };
                let children = self.list(tenant, &filter).await.map_err(failed)?;
                for child in &children {
                    seen += 1;
                    if seen > DESCENDANTS_MAX {
                        return Ok(cancelled);
                    }
                    above.push_back(child.id);
                    if child.status == ExecutionStatus::Running {
                        let input = self.cancellation(Some(reason.clone()));
                        match self.journal.submit(child.id, input).await {
                            Ok(_) => cancelled.push(child.id),
                            // Ended in the meantime, or was imported.
                            Err(SubmitError::Refused(_)) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                offset += children.len();
                if children.len() < PAGE {
                    break;
                }
            }
        }
        Ok(cancelled)
    }

    /// Cancels executions that started longer ago than `age`, at most [`CLEANED_MAX`], and returns
    /// their IDs. A dry run only returns the IDs. Skips imported executions, which cannot be
    /// cancelled here.
    pub async fn cancel_older(
        &self,
        tenant: &Tenant,
        age: Duration,
        dry_run: bool,
    ) -> Result<Vec<ExecutionId>, SubmitError> {
        let failed = |error| SubmitError::Store(Arc::new(error));
        let started_before = Some(self.clock.now().minus(age));
        let minutes = age.as_secs() / 60;
        let reason = format!("cleaned up: it began more than {minutes} minutes ago");
        let mut cancelled = Vec::new();
        // Skipped executions stay in the listing; cancelled ones leave it.
        let mut passed = 0;
        loop {
            let filter = ExecutionFilter {
                status: Some(ExecutionStatus::Running),
                started_before,
                offset: passed,
                limit: PAGE,
                ..ExecutionFilter::default()
            };
            let old = self.list(tenant, &filter).await.map_err(failed)?;
            let is_last = old.len() < PAGE;
            for row in old {
                if cancelled.len() == CLEANED_MAX {
                    return Ok(cancelled);
                }
                if self.start_event(row.id).await.map_err(failed)?.is_none() {
                    passed += 1;
                    continue;
                }
                if dry_run {
                    passed += 1;
                    cancelled.push(row.id);
                    continue;
                }
                let input = self.cancellation(Some(reason.clone()));
                match self.journal.submit(row.id, input).await {
                    Ok(_) => cancelled.push(row.id),
                    // Ended in the meantime.
                    Err(SubmitError::Refused(_)) => passed += 1,
                    Err(error) => return Err(error),
                }
            }
            if is_last {
                return Ok(cancelled);
            }
        }
    }

    /// Starts the same version of the same playbook with the original workload and `workload`
    /// merged over it.
    pub async fn rerun(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        mut workload: Map,
        trace: TraceParent,
    ) -> Result<StartedExecution, ForkError> {
        let row = self.get(tenant, id).await.map_err(ForkError::Store)?;
        row.ok_or(ForkError::NotFound(id))?;
        let began = self.start_event(id).await.map_err(ForkError::Store)?;
        let began = began.ok_or(ForkError::Imported(id))?;
        self.clean(tenant, &mut workload);
        let mut payload = began.workload;
        noetl_engine::merge(&mut payload, &workload);
        let request = StartRequest {
            catalog: Some(began.catalog),
            payload,
            pool: began.pool.map(|pool| pool.to_string()),
            trace,
            ..StartRequest::default()
        };
        let ready = self.find_and_compile(tenant, request).await.map_err(ForkError::Start)?;
        let input = Input::Start(Box::new(ready.start));
        let begun = self.begin(tenant, &ready.playbook, &input, Some(id)).await;
        begun.map_err(ForkError::Start)
    }

    /// Returns the start of an execution, or `None` for an imported one.
    pub(crate) async fn start_event(
        &self,
        id: ExecutionId,
    ) -> Result<Option<Beginning>, StoreError> {
        let first = self.events(id, Seq::START, 1).await?;
        Ok(first.into_iter().find_map(|event| match event.fact {
            Fact::PlaybookStarted(started) => Some(*started),
            _ => None,
        }))
    }
}

//! Schedules: playbooks started by the clock.
//!
//! A schedule is a row with the time of its next run. Documents of the catalog create and change
//! rows, and so do API clients. The parent of every scheduled run is the schedule's ID, as it is
//! the subscription's ID for a message, so a schedule's runs are found by their parent.

mod plan;
mod rows;
mod runner;

use std::sync::Arc;

use noetl_journal::{Executions, Metrics, StartError, StartRequest, StartedExecution};
use noetl_model::{DEPTH_MAX, ExecutionId, Map, ScheduleId, Tenant, Value, is_deeper_than};
use noetl_playbook::{Diagnostic, Schedule, check_schedule};
use noetl_store::{ExecutionFilter, ExecutionRow, ScheduleRow, StoreError};
use serde_json::json;

pub(crate) use rows::ScheduleRows;
pub(crate) use runner::Runner;

/// Keys of which exactly one sets the time. Setting one replaces the others.
const WHEN: [&str; 3] = ["cron", "every", "at"];

/// Definition of a schedule, in the form of a document's `spec`.
#[derive(Debug, Clone, Default)]
pub struct ScheduleSpec {
    /// Name shown for the schedule.
    pub name: Option<String>,
    pub spec: Map,
}

#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The schedule does not exist.
    #[error("Schedule {0} not found")]
    NotFound(ScheduleId),
    #[error("the schedule has errors")]
    Invalid(Vec<Diagnostic>),
    /// The payload could be written but not read back.
    #[error("the payload nests more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// A document defines the schedule, so only the document can change it.
    #[error("Schedule {id} is that of the document '{path}'; change the document instead")]
    OfDocument { id: ScheduleId, path: String },
    /// The playbook could not be started.
    #[error("the playbook was not started")]
    Start(#[source] StartError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Manages schedules. Cheap to clone.
#[derive(Clone)]
pub struct Schedules {
    rows: ScheduleRows,
    executions: Executions,
    metrics: Arc<Metrics>,
}

impl Schedules {
    pub(crate) fn new(rows: ScheduleRows, executions: Executions, metrics: Arc<Metrics>) -> Self {
        Self { rows, executions, metrics }
    }

    /// Creates a schedule that no document defines.
    pub async fn create(
        &self,
        tenant: &Tenant,
        wanted: ScheduleSpec,
    ) -> Result<ScheduleRow, ScheduleError> {
        let (name, schedule) = checked(wanted)?;
        self.rows.create(tenant, name, &schedule).await.map_err(ScheduleError::Store)
    }

    /// Changes a schedule: replaces the given keys, and removes those that are null.
    pub async fn change(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        changes: ScheduleSpec,
    ) -> Result<ScheduleRow, ScheduleError> {
        let row = self.own(tenant, id).await?;
        let mut spec = plan::spec_of(&row);
        if WHEN.iter().any(|name| changes.spec.get(*name).is_some_and(|said| !said.is_null())) {
            WHEN.iter().for_each(|name| drop(spec.remove(*name)));
            if !changes.spec.contains_key("cron") {
                spec.remove("timezone");
            }
        }
        for (name, said) in changes.spec {
            match said {
                Value::Null => drop(spec.remove(&name)),
                said => drop(spec.insert(name, said)),
            }
        }
        let name = changes.name.or_else(|| plan::name_of(&row));
        let (name, schedule) = checked(ScheduleSpec { name, spec })?;
        self.rows.replace(&row, name, &schedule).await.map_err(ScheduleError::Store)
    }

    pub async fn get(&self, tenant: &Tenant, id: ScheduleId) -> Result<ScheduleRow, ScheduleError> {
        let found = self.rows.store.schedule(tenant, id).await.map_err(ScheduleError::Store)?;
        found.ok_or(ScheduleError::NotFound(id))
    }

    /// Returns every schedule of a tenant, ordered by ID.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<ScheduleRow>, ScheduleError> {
        self.rows.store.schedules(tenant).await.map_err(ScheduleError::Store)
    }

    /// Enables or disables a schedule. Runs that were due while it was disabled don't count as
    /// missed.
    pub async fn enable(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        is_enabled: bool,
    ) -> Result<ScheduleRow, ScheduleError> {
        let row = self.get(tenant, id).await?;
        if row.schedule.is_enabled == is_enabled {
            return Ok(row);
        }
        self.rows.enable(&row, is_enabled).await.map_err(ScheduleError::Store)
    }

    /// Starts a run now. The next scheduled run is unchanged. `actor` is the caller; see
    /// [`Executions::with_actor`].
    pub async fn run_now(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        actor: Option<Arc<str>>,
    ) -> Result<StartedExecution, ScheduleError> {
        let row = self.get(tenant, id).await?;
        let request = request(&row, None);
        self.executions.with_actor(actor).start(tenant, request).await.map_err(ScheduleError::Start)
    }

    /// Deletes a schedule. Executions it started continue.
    pub async fn remove(&self, tenant: &Tenant, id: ScheduleId) -> Result<(), ScheduleError> {
        self.own(tenant, id).await?;
        let removed = self.rows.store.remove_schedule(tenant, id).await;
        match removed.map_err(ScheduleError::Store)? {
            true => Ok(()),
            false => Err(ScheduleError::NotFound(id)),
        }
    }

    /// Returns the most recent runs of a schedule.
    pub async fn runs(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        limit: usize,
    ) -> Result<Vec<ExecutionRow>, ScheduleError> {
        let filter =
            ExecutionFilter { parent: Some(parent(id)), limit, ..ExecutionFilter::default() };
        self.executions.list(tenant, &filter).await.map_err(ScheduleError::Store)
    }

    /// Returns a schedule, or an error if a document defines it.
    async fn own(&self, tenant: &Tenant, id: ScheduleId) -> Result<ScheduleRow, ScheduleError> {
        let row = self.get(tenant, id).await?;
        match plan::document_of(&row) {
            Some(path) => Err(ScheduleError::OfDocument { id, path }),
            None => Ok(row),
        }
    }
}

/// Returns the start request of a run. `due` is its scheduled time, or `None` for a manual run.
fn request(row: &ScheduleRow, due: Option<noetl_model::Timestamp>) -> StartRequest {
    let said = &row.schedule;
    let mut payload = match &said.payload {
        Some(Value::Object(payload)) => payload.clone(),
        _ => Map::new(),
    };
    // A payload key `schedule` set by the author takes precedence.
    payload.entry("schedule").or_insert_with(|| {
        json!({
            "schedule_id": said.id.to_string(),
            "name": plan::name_of(row),
            "due_at": due.map(|due| due.to_string()),
        })
    });
    StartRequest {
        path: Some(said.path.clone()),
        version: said.version,
        payload,
        parent: Some(parent(said.id)),
        pool: plan::pool_of(row),
        ..StartRequest::default()
    }
}

/// Returns the parent ID of a schedule's runs.
fn parent(id: ScheduleId) -> ExecutionId {
    ExecutionId::new(id.get())
}

/// Validates a definition like a document. The payload is opaque and only checked for depth.
fn checked(wanted: ScheduleSpec) -> Result<(Option<String>, Schedule), ScheduleError> {
    let ScheduleSpec { name, mut spec } = wanted;
    let payload = match spec.get("payload") {
        Some(Value::Object(_)) => spec.remove("payload"),
        _ => None,
    };
    if payload.as_ref().is_some_and(|payload| is_deeper_than(payload, DEPTH_MAX)) {
        return Err(ScheduleError::TooDeep);
    }
    let called = name.clone().unwrap_or_else(|| "schedule".to_owned());
    let document = json!({"kind": "Schedule", "metadata": {"name": called}, "spec": spec});
    let checked = check_schedule(&document.to_string());
    let Some(mut schedule) = checked.schedule else {
        return Err(ScheduleError::Invalid(checked.diagnostics));
    };
    if let Some(Value::Object(payload)) = payload {
        schedule.payload = payload;
    }
    Ok((name, schedule))
}

//! Creates and changes schedule rows. A change that does not affect the timing keeps the next run
//! time.

use std::sync::Arc;

use noetl_catalog::SCHEDULE_KIND;
use noetl_identity::IdGenerator;
use noetl_model::{Clock, ScheduleId, Tenant, Value};
use noetl_playbook::{Schedule, check_schedule};
use noetl_store::{CatalogEntry, NewSchedule, ScheduleRow, StoreError, TriggerStore};
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use super::plan::{self, SchedulePlan, ScheduleTimes};

/// Creates and changes schedule rows. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ScheduleRows {
    pub(super) store: Arc<dyn TriggerStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: IdGenerator,
    /// Notified when this process changes a row.
    pub(super) changed: Arc<Notify>,
}

impl ScheduleRows {
    pub(crate) fn new(
        store: Arc<dyn TriggerStore>,
        clock: Arc<dyn Clock>,
        ids: IdGenerator,
    ) -> Self {
        Self { store, clock, ids, changed: Arc::default() }
    }

    /// Updates the row of a document to its latest version, and deletes the row if the document no
    /// longer exists. Repeats until the latest version is unchanged afterwards: of two concurrent
    /// callers, in any processes, the later write may be of the earlier version. With `kind`, the
    /// kind of the registered document, other kinds are skipped early.
    pub(crate) async fn sync_document(
        &self,
        tenant: &Tenant,
        path: &str,
        kind: Option<&str>,
    ) -> Result<(), StoreError> {
        let id = id_of(tenant, path);
        let known = self.store.schedule(tenant, id).await?;
        if known.is_none() && kind.is_some_and(|kind| kind != SCHEDULE_KIND) {
            return Ok(());
        }
        let mut entry = self.store.entry_at(tenant, path, None).await?;
        loop {
            self.make(tenant, path, entry.as_ref()).await?;
            let newest = self.store.entry_at(tenant, path, None).await?;
            let version = |entry: &Option<CatalogEntry>| entry.as_ref().map(|entry| entry.id);
            if version(&newest) == version(&entry) {
                return Ok(());
            }
            entry = newest;
        }
    }

    /// Updates the row of a path to this version of its document.
    async fn make(
        &self,
        tenant: &Tenant,
        path: &str,
        entry: Option<&CatalogEntry>,
    ) -> Result<(), StoreError> {
        let id = id_of(tenant, path);
        let known = self.store.schedule(tenant, id).await?;
        let document = entry.filter(|entry| entry.kind == SCHEDULE_KIND);
        let schedule = document.and_then(|entry| check_schedule(&entry.content).schedule);
        let Some(schedule) = schedule else {
            if known.is_some() {
                self.store.remove_schedule(tenant, id).await?;
            }
            return Ok(());
        };
        let name = Some(schedule.name.clone());
        self.put(tenant, id, known.as_ref(), name, Some(path), &schedule).await.map(|_| ())
    }

    pub(super) async fn create(
        &self,
        tenant: &Tenant,
        name: Option<String>,
        schedule: &Schedule,
    ) -> Result<ScheduleRow, StoreError> {
        self.ids.ensure_leased()?;
        self.put(tenant, self.ids.schedule(), None, name, None, schedule).await
    }

    pub(super) async fn replace(
        &self,
        known: &ScheduleRow,
        name: Option<String>,
        schedule: &Schedule,
    ) -> Result<ScheduleRow, StoreError> {
        self.put(&known.tenant, known.schedule.id, Some(known), name, None, schedule).await
    }

    pub(super) async fn enable(
        &self,
        known: &ScheduleRow,
        is_enabled: bool,
    ) -> Result<ScheduleRow, StoreError> {
        let mut said = known.schedule.clone();
        said.is_enabled = is_enabled;
        if let (true, Ok(plan)) = (is_enabled, SchedulePlan::from_row(known)) {
            said.next_run_at = plan::first(&plan.when, known.last_run_at, self.clock.now());
        }
        self.keep(&known.tenant, said).await
    }

    async fn put(
        &self,
        tenant: &Tenant,
        id: ScheduleId,
        known: Option<&ScheduleRow>,
        name: Option<String>,
        document: Option<&str>,
        schedule: &Schedule,
    ) -> Result<ScheduleRow, StoreError> {
        let columns = ScheduleTimes::from_trigger(&schedule.when);
        let was_enabled = known.is_none_or(|row| row.schedule.is_enabled);
        let is_enabled = schedule.enabled.unwrap_or(was_enabled);
        let same = known.filter(|row| {
            ScheduleTimes::of_row(row) == columns && row.schedule.is_enabled == is_enabled
        });
        let last = known.and_then(|row| row.last_run_at);
        let next_run_at = match same {
            Some(row) => row.schedule.next_run_at,
            None => plan::first(&schedule.when, last, self.clock.now()),
        };
        let said = NewSchedule {
            id,
            path: schedule.playbook.clone(),
            version: schedule.version,
            is_enabled,
            payload: (!schedule.payload.is_empty())
                .then(|| Value::Object(schedule.payload.clone())),
            meta: Some(plan::meta(known, name, document, schedule)),
            cron: columns.cron,
            timezone: columns.timezone,
            interval_seconds: columns.interval_seconds,
            next_run_at,
        };
        self.keep(tenant, said).await
    }

    async fn keep(&self, tenant: &Tenant, said: NewSchedule) -> Result<ScheduleRow, StoreError> {
        let row = self.store.put_schedule(tenant, said).await?;
        self.changed.notify_one();
        Ok(row)
    }
}

/// Returns the schedule ID of the document at a path. Deterministic, so concurrent registrations
/// create one schedule.
fn id_of(tenant: &Tenant, path: &str) -> ScheduleId {
    let digest = Sha256::new().chain_update(tenant.as_str()).chain_update([0]).chain_update(path);
    let digest: [u8; 32] = digest.finalize().into();
    let (number, _) = digest.split_at(8);
    let number = number.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    ScheduleId::new((number >> 1).cast_signed())
}

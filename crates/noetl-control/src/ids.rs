//! Mints ids for this process.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::{
    AuditId, CatalogId, Clock, CredentialId, DueId, EventId, ExecutionId, MachineId, ResultId,
    ScheduleId, Snowflakes, SubscriptionId, Timestamp,
};
use noetl_store::StoreError;

/// How far another machine's clock may be ahead of this one's.
const AHEAD_MAX: Duration = Duration::from_secs(60);

/// The one source of new ids in a process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Ids {
    clock: Arc<dyn Clock>,
    snowflakes: Arc<Mutex<Snowflakes>>,
    /// Whether the machine number is certainly this process's.
    is_held: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Ids {
    /// Ids with this machine number, for as long as `is_held` says so.
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        machine: MachineId,
        is_held: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let snowflakes = Arc::new(Mutex::new(Snowflakes::new(machine)));
        Self { clock, snowflakes, is_held: Arc::new(is_held) }
    }

    /// Refuses when an id minted now could be another process's. The journal asks for a whole batch
    /// at a time; whoever else mints asks here first.
    pub(crate) fn leased(&self) -> Result<(), StoreError> {
        if (self.is_held)() {
            return Ok(());
        }
        Err(StoreError::backend("mint an id", "this process waits for a machine number"))
    }

    pub(crate) fn go_past(&self, newest: EventId) {
        self.lock().go_past(newest.get());
    }

    pub(crate) fn change_machine(&self, machine: MachineId) {
        self.lock().change_machine(machine);
    }

    pub(crate) fn due(&self) -> DueId {
        DueId::new(self.mint())
    }

    pub(crate) fn event(&self) -> EventId {
        EventId::new(self.mint())
    }

    pub(crate) fn execution(&self) -> ExecutionId {
        ExecutionId::new(self.mint())
    }

    pub(crate) fn catalog(&self) -> CatalogId {
        CatalogId::new(self.mint())
    }

    pub(crate) fn subscription(&self) -> SubscriptionId {
        SubscriptionId::new(self.mint())
    }

    pub(crate) fn schedule(&self) -> ScheduleId {
        ScheduleId::new(self.mint())
    }

    pub(crate) fn credential(&self) -> CredentialId {
        CredentialId::new(self.mint())
    }

    pub(crate) fn audit(&self) -> AuditId {
        AuditId::new(self.mint())
    }

    pub(crate) fn result(&self) -> ResultId {
        ResultId::new(self.mint())
    }

    /// Whether an id from elsewhere may stand in the log: positive, and not from a clock that is
    /// far ahead, which would drag every later id along.
    pub(crate) fn is_plausible(&self, id: EventId) -> bool {
        let latest = self.clock.now().plus(AHEAD_MAX);
        id.get() > 0 && Snowflakes::time_of(id.get()) <= latest
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn mint(&self) -> i64 {
        let now = self.clock.now();
        self.lock().mint(now)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Snowflakes> {
        // Minting cannot panic half-way, so a poisoned lock still guards a sound source.
        self.snowflakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number nobody can foretell well: start keys and `uuid4()` are made from it.
pub(crate) fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

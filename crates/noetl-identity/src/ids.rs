//! Mints the IDs of this process.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::{
    AuditId, CatalogId, Clock, CredentialId, EventId, ExecutionId, MachineId, ResultId, ScheduleId,
    Snowflakes, SubscriptionId, TimerId, Timestamp,
};
use noetl_store::StoreError;

/// Clock skew by which another machine may be ahead of this one.
const AHEAD_MAX: Duration = Duration::from_secs(60);

/// Generator of all IDs in this process. Cheap to clone.
#[derive(Clone)]
pub struct IdGenerator {
    clock: Arc<dyn Clock>,
    snowflakes: Arc<Mutex<Snowflakes>>,
    /// Returns `true` while this process certainly holds its machine ID.
    is_held: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl IdGenerator {
    /// Creates a generator for this machine ID. `is_held` returns `true` while the machine ID is
    /// leased.
    pub fn new(
        clock: Arc<dyn Clock>,
        machine: MachineId,
        is_held: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let snowflakes = Arc::new(Mutex::new(Snowflakes::new(machine)));
        Self { clock, snowflakes, is_held: Arc::new(is_held) }
    }

    /// Fails if the machine-ID lease lapsed, because a new ID could collide. The journal checks
    /// once per batch; every other caller checks here before it mints.
    pub fn ensure_leased(&self) -> Result<(), StoreError> {
        if (self.is_held)() {
            return Ok(());
        }
        Err(StoreError::backend("mint an id", "this process waits for a machine number"))
    }

    pub fn advance_past(&self, newest: EventId) {
        self.lock().advance_past(newest.get());
    }

    pub fn change_machine(&self, machine: MachineId) {
        self.lock().change_machine(machine);
    }

    pub fn due(&self) -> TimerId {
        TimerId::new(self.mint())
    }

    pub fn event(&self) -> EventId {
        EventId::new(self.mint())
    }

    pub fn execution(&self) -> ExecutionId {
        ExecutionId::new(self.mint())
    }

    pub fn catalog(&self) -> CatalogId {
        CatalogId::new(self.mint())
    }

    pub fn subscription(&self) -> SubscriptionId {
        SubscriptionId::new(self.mint())
    }

    pub fn schedule(&self) -> ScheduleId {
        ScheduleId::new(self.mint())
    }

    pub fn credential(&self) -> CredentialId {
        CredentialId::new(self.mint())
    }

    pub fn audit(&self) -> AuditId {
        AuditId::new(self.mint())
    }

    pub fn result(&self) -> ResultId {
        ResultId::new(self.mint())
    }

    /// Returns `true` if an external ID is acceptable in the log: positive, and not from a clock
    /// that is far ahead, because all later IDs would have to follow it.
    pub fn is_plausible(&self, id: EventId) -> bool {
        let latest = self.clock.now().plus(AHEAD_MAX);
        id.get() > 0 && Snowflakes::time_of(id.get()) <= latest
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn mint(&self) -> i64 {
        let now = self.clock.now();
        self.lock().mint(now)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Snowflakes> {
        // Minting cannot panic halfway, so a poisoned lock still guards a consistent generator.
        self.snowflakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a number that is hard to predict, the source of start keys and `uuid4()`.
pub fn entropy() -> u64 {
    RandomState::new().build_hasher().finish()
}

//! Executions, commands, and the catalog of a [`FaultyStore`].

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CatalogId, CommandId, ExecutionId, Tenant, Timestamp};
use noetl_store::{
    CatalogEntry, CatalogHead, CatalogSize, CatalogStore, CatalogVersion, CommandFilter,
    CommandRow, CommandStore, ExecutionFilter, ExecutionRow, ExecutionStatus, ExecutionStore,
    Import, ImportOutcome, ImportStore, NewEntry, StartCounts, StoreError, TimeBuckets,
};

use super::FaultyStore;
use super::interceptor::forward;

forward! { ImportStore {
    fn import(rows: Vec<Import>) -> Vec<ImportOutcome>;
    fn imported(executions: &[ExecutionId]) -> HashSet<ExecutionId>;
} }

forward! { ExecutionStore {
    fn execution(tenant: &Tenant, id: ExecutionId) -> Option<ExecutionRow>;
    fn tenant_of(id: ExecutionId) -> Option<Tenant>;
    fn executions(tenant: &Tenant, filter: &ExecutionFilter) -> Vec<ExecutionRow>;
    fn executions_by_status(tenant: &Tenant) -> Vec<(ExecutionStatus, u64)>;
    fn executions_by_start(tenant: &Tenant, stretch: TimeBuckets) -> Vec<StartCounts>;
    fn every_execution(after: ExecutionId, limit: usize) -> Vec<(Tenant, ExecutionRow)>;
    fn unfinished(after: ExecutionId, limit: usize) -> Vec<ExecutionId>;
} }

forward! { CommandStore {
    fn command(id: CommandId) -> Option<CommandRow>;
    fn open_commands(after: CommandId, limit: usize) -> Vec<CommandRow>;
    fn pending_commands(wanted: &CommandFilter, limit: usize) -> Vec<CommandRow>;
    fn pending_by_pool() -> Vec<(Arc<str>, u64)>;
} }

forward! { CatalogStore {
    fn catalog_size(tenant: &Tenant) -> CatalogSize;
    fn register(tenant: &Tenant, entry: NewEntry) -> CatalogEntry;
    fn entry(tenant: &Tenant, id: CatalogId) -> Option<CatalogEntry>;
    fn entry_at(tenant: &Tenant, path: &str, version: Option<u32>) -> Option<CatalogEntry>;
    fn entries(tenant: &Tenant, kind: Option<&str>) -> Vec<CatalogEntry>;
    fn newest_of(tenant: &Tenant, kind: &str) -> Vec<CatalogHead>;
    fn versions(tenant: &Tenant, path: &str) -> Vec<CatalogVersion>;
    fn set_deleted(
        tenant: &Tenant, path: &str, version: Option<u32>, at: Option<Timestamp>,
    ) -> Vec<CatalogVersion>;
} }

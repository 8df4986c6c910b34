//! Data of the cluster store: data that belongs to no execution, or that must be found before its
//! execution is known.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{
    CatalogId, CredentialId, ExecutionId, ScheduleId, SubscriptionId, Tenant, Timestamp,
};

use super::Sharded;
use crate::{
    AccessToken, AuditChain, AuditFilter, AuditLink, CatalogEntry, CatalogHead, CatalogSize,
    CatalogStore, CatalogVersion, CredentialFilter, CredentialStore, CursorStore, CursorUpdate,
    DedupOutcome, EventStamp, Grant, Grants, KeychainEntry, KeychainFilter, KeychainStore, Lease,
    LeaseStore, NewCredential, NewEntry, NewGrant, NewKeychainEntry, NewRuntime, NewRuntimeEvent,
    NewSchedule, NewSubscription, NewToken, Object, ObjectSummary, Objects, Plugin, PluginSummary,
    Plugins, RuntimeEventOutcome, RuntimeFilter, RuntimeKind, RuntimeRow, RuntimeStore,
    ScheduleRow, ScheduleStore, SealedLocation, SealedRecordStore, SealedRow, SealedText,
    SecretAuditStore, SecretUse, StoreError, StoredCredential, SubscriptionAction, SubscriptionRow,
    SubscriptionState, SubscriptionStore, TokenStore,
};

/// Implements a trait by forwarding every call to the cluster store.
macro_rules! in_cluster {
    ($name:ident { $(fn $call:ident($($given:ident: $kind:ty),* $(,)?) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $name for Sharded {$(
            async fn $call(&self, $($given: $kind),*) -> Result<$answer, StoreError> {
                self.cluster.named(self.cluster.store.$call($($given),*).await)
            }
        )*}
    };
}

in_cluster! { CatalogStore {
    fn register(tenant: &Tenant, entry: NewEntry) -> CatalogEntry;
    fn entry(tenant: &Tenant, id: CatalogId) -> Option<CatalogEntry>;
    fn entry_at(tenant: &Tenant, path: &str, version: Option<u32>) -> Option<CatalogEntry>;
    fn entries(tenant: &Tenant, kind: Option<&str>) -> Vec<CatalogEntry>;
    fn newest_of(tenant: &Tenant, kind: &str) -> Vec<CatalogHead>;
    fn versions(tenant: &Tenant, path: &str) -> Vec<CatalogVersion>;
    fn catalog_size(tenant: &Tenant) -> CatalogSize;
    fn set_deleted(
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
        at: Option<Timestamp>,
    ) -> Vec<CatalogVersion>;
} }

in_cluster! { LeaseStore {
    fn acquire(name: &str, holder: &str, ttl: Duration) -> Option<Lease>;
    fn renew(lease: &Lease, ttl: Duration) -> bool;
    fn release(lease: &Lease) -> bool;
    fn lease(name: &str) -> Option<Lease>;
    fn live(prefix: &str) -> Vec<Lease>;
    fn acquire_any(
        prefix: &str,
        numbers: Range<u16>,
        holder: &str,
        ttl: Duration,
    ) -> Option<(u16, Lease)>;
} }

in_cluster! { CursorStore {
    fn cursor(name: &str) -> Option<i64>;
    fn advance(name: &str, position: i64, fence: Option<&Lease>) -> CursorUpdate;
} }

in_cluster! { RuntimeStore {
    fn register_runtime(tenant: &Tenant, runtime: NewRuntime) -> RuntimeRow;
    fn heartbeat(tenant: &Tenant, kind: RuntimeKind, name: &str) -> Option<Duration>;
    fn runtimes(tenant: &Tenant, filter: &RuntimeFilter) -> Vec<RuntimeRow>;
    fn deregister(tenant: &Tenant, kind: RuntimeKind, name: &str) -> bool;
    fn purge_stale(older_than: Duration) -> usize;
} }

in_cluster! { SubscriptionStore {
    fn register_subscription(tenant: &Tenant, new: NewSubscription) -> SubscriptionRow;
    fn subscription(tenant: &Tenant, id: SubscriptionId) -> Option<SubscriptionRow>;
    fn subscriptions(tenant: &Tenant) -> Vec<SubscriptionRow>;
    fn logs_of_subscriptions(logs: &[ExecutionId]) -> HashSet<ExecutionId>;
    fn subscription_counts() -> Vec<(SubscriptionState, u64)>;
    fn transition(
        tenant: &Tenant,
        id: SubscriptionId,
        from: SubscriptionState,
        action: SubscriptionAction,
        stamp: EventStamp,
    ) -> Option<SubscriptionRow>;
    fn note_subscription(tenant: &Tenant, id: SubscriptionId, note: NewRuntimeEvent) -> Option<RuntimeEventOutcome>;
    fn reserve(
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
        window: Duration,
    ) -> DedupOutcome;
    fn unreserve(
        tenant: &Tenant,
        subscription: SubscriptionId,
        key: &str,
        execution: ExecutionId,
    ) -> bool;
    fn prune_reserved(older_than: Duration) -> usize;
} }

in_cluster! { ScheduleStore {
    fn put_schedule(tenant: &Tenant, schedule: NewSchedule) -> ScheduleRow;
    fn schedule(tenant: &Tenant, id: ScheduleId) -> Option<ScheduleRow>;
    fn schedules(tenant: &Tenant) -> Vec<ScheduleRow>;
    fn ready_schedules(limit: usize) -> Vec<ScheduleRow>;
    fn next_schedule() -> Option<Timestamp>;
    fn fix_run(
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        execution: ExecutionId,
    ) -> Option<ExecutionId>;
    fn move_on(
        tenant: &Tenant,
        id: ScheduleId,
        due: Timestamp,
        next: Option<Timestamp>,
        status: &str,
    ) -> bool;
    fn remove_schedule(tenant: &Tenant, id: ScheduleId) -> bool;
} }

in_cluster! { CredentialStore {
    fn put_credential(tenant: &Tenant, new: NewCredential) -> StoredCredential;
    fn credential(tenant: &Tenant, id: CredentialId) -> Option<StoredCredential>;
    fn credential_named(tenant: &Tenant, name: &str) -> Option<StoredCredential>;
    fn credentials(tenant: &Tenant, filter: &CredentialFilter) -> Vec<StoredCredential>;
    fn delete_credential(tenant: &Tenant, id: CredentialId) -> bool;
} }

in_cluster! { KeychainStore {
    fn put_keychain_entry(tenant: &Tenant, new: NewKeychainEntry) -> KeychainEntry;
    fn use_keychain_entry(tenant: &Tenant, cache_key: &str) -> Option<KeychainEntry>;
    fn keychain_entry(tenant: &Tenant, cache_key: &str) -> Option<KeychainEntry>;
    fn keychain_entries(tenant: &Tenant, filter: &KeychainFilter) -> Vec<KeychainEntry>;
    fn delete_keychain_entry(tenant: &Tenant, cache_key: &str) -> bool;
    fn purge_keychain(limit: usize) -> usize;
} }

in_cluster! { SealedRecordStore {
    fn sealed_rows(after: Option<&SealedLocation>, limit: usize) -> Vec<SealedRow>;
    fn reseal(place: &SealedLocation, was: &SealedText, now: &SealedText) -> bool;
    fn sealed_setting(name: &str) -> Option<SealedText>;
    fn put_sealed_setting(name: &str, new: &SealedText) -> SealedText;
} }

in_cluster! { SecretAuditStore {
    fn audit_secret(tenant: &Tenant, used: SecretUse) -> bool;
    fn secret_uses(tenant: &Tenant, filter: &AuditFilter) -> Vec<SecretUse>;
    fn audit_chain() -> AuditChain;
    fn audit_links(after: i64, limit: usize) -> Vec<AuditLink>;
    fn purge_secret_uses(age: Duration, limit: usize) -> usize;
} }

in_cluster! { TokenStore {
    fn put_token(tenant: &Tenant, new: NewToken) -> AccessToken;
    fn put_first_token(tenant: &Tenant, new: NewToken) -> Option<AccessToken>;
    fn token(id: &str) -> Option<AccessToken>;
    fn tokens(tenant: &Tenant) -> Vec<AccessToken>;
    fn revoke_token(tenant: &Tenant, id: &str) -> bool;
} }

in_cluster! { Grants {
    fn put_grant(tenant: &Tenant, new: NewGrant) -> Grant;
    fn grants(tenant: &Tenant) -> Vec<Grant>;
    fn remove_grant(tenant: &Tenant, id: &str) -> bool;
} }

in_cluster! { Objects {
    fn put_object(key: &str, media_type: &str, bytes: Vec<u8>) -> ObjectSummary;
    fn object(key: &str) -> Option<Object>;
    fn delete_object(key: &str) -> bool;
    fn objects(prefix: &str, after: Option<&str>, limit: usize) -> Vec<ObjectSummary>;
    fn objects_ending(suffix: &str, limit: usize) -> Vec<ObjectSummary>;
} }

in_cluster! { Plugins {
    fn put_plugin(path: &str, version: i32, media_type: &str, bytes: Vec<u8>) -> PluginSummary;
    fn plugin(path: &str, version: Option<i32>) -> Option<Plugin>;
    fn delete_plugin(path: &str, version: i32) -> bool;
    fn plugins(prefix: &str, after: Option<(&str, i32)>, limit: usize) -> Vec<PluginSummary>;
} }

//! Store traits of services: each is made of the traits of the tables that its service uses.
//!
//! A service takes one of them as `Arc<dyn ...>`. Every store with the tables implements it, and all of
//! them are supertraits of [`Store`](crate::Store), so a whole store converts to each.

use crate::{
    BlobRefs, CatalogStore, CommandLeaseStore, CommandStore, CredentialStore, CursorStore,
    Database, EventLog, ExecutionStore, Grants, ImportStore, KeychainStore, LeaseStore, LogTail,
    Objects, OutboxStore, Plugins, ResultStore, RuntimeStore, ScheduleStore, SealedRecordStore,
    SecretAuditStore, SnapshotStore, StepLogStore, SubscriptionStore, TimerStore, TokenStore,
    VariableStore,
};

/// Declares a store trait, and implements it for every store with its tables.
macro_rules! service_store {
    ($(#[doc = $doc:literal])+ $name:ident: $first:ident $(+ $table:ident)*) => {
        $(#[doc = $doc])+
        pub trait $name: $first $(+ $table)* {}

        impl<S: ?Sized + $first $(+ $table)*> $name for S {}
    };
}

service_store! {
    /// Storage of the lease of a machine ID.
    IdentityStore: EventLog + LeaseStore
}

service_store! {
    /// Storage of documents and quotas.
    DocumentStore: CatalogStore + ExecutionStore
}

service_store! {
    /// Storage of results, variables, and objects outside event logs.
    ExecutionDataStore: ExecutionStore + ResultStore + VariableStore + Objects + Plugins + BlobRefs
}

service_store! {
    /// Storage of credentials, keychain, tokens, grants, and their audit.
    SecretsStore: IdentityStore + CredentialStore + KeychainStore + SealedRecordStore + SecretAuditStore + TokenStore + Grants + CatalogStore + ExecutionStore + CommandStore + CommandLeaseStore + RuntimeStore + SubscriptionStore
}

service_store! {
    /// Storage of the journal: executions, timers, dispatch, step logs, and subscriptions.
    JournalStore: EventLog + SnapshotStore + TimerStore + ExecutionStore + CommandStore + CommandLeaseStore + CatalogStore + LeaseStore + StepLogStore + SubscriptionStore + RuntimeStore
}

service_store! {
    /// Storage of remote workers, their leases, and reports.
    RemoteStore: EventLog + ExecutionStore + CommandStore + CommandLeaseStore + RuntimeStore + LeaseStore + TimerStore + SubscriptionStore
}

service_store! {
    /// Storage of reads of event logs.
    ViewStore: EventLog + SnapshotStore + ExecutionStore + CommandStore + CatalogStore + RuntimeStore + SubscriptionStore + Database
}

service_store! {
    /// Storage of schedules, listeners, and deduplicated starts.
    TriggerStore: ScheduleStore + SubscriptionStore + CatalogStore + ExecutionStore
}

service_store! {
    /// Storage of the event stream, announcements, the outbox, and imports.
    PublishingStore: LogTail + CursorStore + LeaseStore + EventLog + CommandStore + OutboxStore + ImportStore
}

//! The services of this crate that every control plane has. Publishers and consumers are started on
//! a bus, by their handles.

use std::sync::Arc;

use noetl_identity::IdGenerator;
use noetl_remote::RemoteService;
use noetl_store::PublishingStore;

use crate::import::ImportService;
use crate::outbox::OutboxService;

/// Services for external publishers and for rows of other control planes. Cheap to clone.
#[derive(Clone)]
pub struct Publishing {
    /// Outbox rows for external publishers.
    pub outbox: OutboxService,
    /// Rows imported by system pools.
    pub imports: ImportService,
}

impl Publishing {
    /// Creates the services. Imported rows are recorded as reports.
    pub fn new(store: Arc<dyn PublishingStore>, ids: &IdGenerator, remote: &RemoteService) -> Self {
        let imports = ImportService::new(store.clone(), remote.reports.clone(), ids.clone());
        Self { outbox: OutboxService::new(store), imports }
    }
}

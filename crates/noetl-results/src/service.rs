//! The services of this crate, created together.

use std::sync::Arc;

use noetl_identity::IdGenerator;
use noetl_model::Clock;
use noetl_store::{Blobs, ExecutionDataStore};
use noetl_work::Redaction;

use crate::content::Content;
use crate::objects::Objects;
use crate::results::ResultStorage;
use crate::stored_results::StoredResults;
use crate::variables::Variables;

/// Services for data outside the event log. Cheap to clone.
#[derive(Clone)]
pub struct ExecutionData {
    pub results: ResultStorage,
    /// Results that workers store independently of reports.
    pub stored_results: StoredResults,
    pub variables: Variables,
    /// Objects and modules shared by workers.
    pub objects: Objects,
    /// Blobs by digest, as workers upload and download them.
    pub content: Content,
}

impl ExecutionData {
    /// Creates the services. Large results go to `blobs`, with the secrets of `redaction` replaced.
    pub fn new(
        store: Arc<dyn ExecutionDataStore>,
        blobs: &Arc<dyn Blobs>,
        clock: &Arc<dyn Clock>,
        ids: &IdGenerator,
        redaction: &Redaction,
    ) -> Self {
        let results = ResultStorage::new(blobs.clone());
        let stored_results =
            StoredResults::new(store.clone(), ids.clone(), results.clone(), redaction.clone());
        Self {
            results,
            stored_results,
            variables: Variables::new(store.clone(), redaction.clone()),
            objects: Objects::new(store, clock.clone()),
            content: Content::new(blobs.clone()),
        }
    }
}

//! Placeholders received with credentials. A worker neither creates nor verifies placeholders,
//! because it has no key.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use noetl_model::ExecutionId;

/// Number of executions whose placeholders are cached. Secrets of an evicted execution are replaced
/// by placeholders that never resolve.
const EXECUTIONS_MAX: NonZeroUsize = NonZeroUsize::new(16_384).expect("it is not zero");

/// Placeholder texts of one execution, by alias and field.
type Texts = BTreeMap<(String, String), String>;

/// Placeholders that the server sent with credentials, by execution. Caches [`EXECUTIONS_MAX`]
/// executions and evicts the least recently used.
pub(crate) struct GivenPlaceholders(Mutex<LruCache<ExecutionId, Arc<Texts>>>);

impl Default for GivenPlaceholders {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(EXECUTIONS_MAX)))
    }
}

impl GivenPlaceholders {
    /// Caches the placeholders of a credential's fields in an execution.
    pub(crate) fn note(
        &self,
        execution: ExecutionId,
        alias: &str,
        fields: BTreeMap<String, String>,
    ) {
        if fields.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = Arc::make_mut(known.get_or_insert_mut(execution, Arc::default));
        texts.extend(fields.into_iter().map(|(field, text)| ((alias.to_owned(), field), text)));
    }

    /// Returns the placeholders of an execution.
    pub(crate) fn of_execution(&self, execution: ExecutionId) -> Arc<Texts> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&execution).cloned().unwrap_or_default()
    }
}

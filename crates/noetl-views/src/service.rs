//! The services of this crate, created together.

use std::sync::Arc;

use noetl_journal::Metrics;
use noetl_results::ExecutionData;
use noetl_store::ViewStore;

use crate::event_pages::EventPages;
use crate::overview::Overview;
use crate::projections::Projections;
use crate::replay::Replay;

/// Services that read event logs. Cheap to clone.
#[derive(Clone)]
pub struct Views {
    pub replay: Replay,
    pub projections: Projections,
    /// Ranges of event logs by event ID.
    pub event_pages: EventPages,
    pub overview: Overview,
}

impl Views {
    /// Creates the services. Replay reads large values from `data`.
    pub fn new(store: Arc<dyn ViewStore>, data: &ExecutionData, metrics: &Arc<Metrics>) -> Self {
        let replay = Replay::new(store.clone(), data.results.clone(), data.stored_results.clone());
        Self {
            projections: Projections::new(store.clone(), replay.clone(), metrics.clone()),
            replay,
            event_pages: EventPages::new(store.clone()),
            overview: Overview { store },
        }
    }
}

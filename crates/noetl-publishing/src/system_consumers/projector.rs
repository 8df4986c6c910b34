//! Advances snapshots of executions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use noetl_bus::Delivery;
use noetl_model::ExecutionId;
use noetl_views::Projections;
use serde::Deserialize;

use super::{MessageHandler, NotYet};

pub(super) struct Projector(Projections);

impl Projector {
    pub(super) fn new(projections: Projections) -> Self {
        Self(projections)
    }
}

/// Column of a row that the projector reads.
#[derive(Deserialize)]
struct ExecutionColumn {
    execution_id: i64,
}

#[async_trait]
impl MessageHandler for Projector {
    /// Advances each execution once, however many of its rows are in the batch. Ignores messages
    /// without an execution.
    async fn deal(&self, given: &[Delivery]) -> Result<(), NotYet> {
        let mut heard_of: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (index, message) in given.iter().enumerate() {
            if let Ok(about) = serde_json::from_slice::<ExecutionColumn>(&message.payload) {
                heard_of.entry(about.execution_id).or_default().push(index);
            }
        }
        let mut not_yet: Option<NotYet> = None;
        for (execution, indexes) in heard_of {
            let advanced = self.0.advance(ExecutionId::new(execution)).await;
            if let Err(why) = advanced {
                // The next execution may be in a shard that is available.
                let not_yet = not_yet.get_or_insert(NotYet { indexes: Vec::new(), why });
                not_yet.indexes.extend(indexes);
            }
        }
        not_yet.map_or(Ok(()), Err)
    }
}

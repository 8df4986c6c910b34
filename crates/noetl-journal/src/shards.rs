//! Maps an execution to the index of the shard that stores it.

use noetl_model::ExecutionId;

/// Returns the index of the shard that stores `execution`, out of `shards`.
pub(crate) fn shard_of(execution: ExecutionId, shards: usize) -> usize {
    let shards = u32::try_from(shards).unwrap_or(u32::MAX);
    usize::try_from(noetl_model::shard_for(execution, shards)).unwrap_or_default()
}

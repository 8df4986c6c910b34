//! Assignment of executions to shards. Published workers compute the same function.

use xxhash_rust::xxh64::xxh64;

use crate::ExecutionId;

/// Returns the shard of `execution` among `shards` shards. 0 if there are fewer than two.
pub fn shard_for(execution: ExecutionId, shards: u32) -> u32 {
    if shards <= 1 {
        return 0;
    }
    let hash = xxh64(&execution.get().to_le_bytes(), 0);
    u32::try_from(hash % u64::from(shards)).expect("a remainder below a u32 fits into a u32")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let vectors = [
            (320_816_801_799_737_344, 16, 14),
            (1, 4, 1),
            (42, 4, 3),
            (325, 4, 0),
            (325, 8, 4),
            (i64::MAX, 4, 0),
            (7, 1, 0),
            (7, 0, 0),
        ];
        for (id, shards, expected) in vectors {
            assert_eq!(shard_for(ExecutionId::new(id), shards), expected, "{id} of {shards}");
        }
    }
}

//! Finds the consumers from which a worker receives the announcements of its pool.

use noetl_bus::ConsumerState;

use super::message::{reader_name, segment};

/// Returns the names of the consumers that serve exactly this pool: the one named after it, and
/// those of its shards if it is sharded. Empty if the server has not created any. Skips consumers
/// with a different filter, because a worker that acks their messages would ack those of other
/// pools.
pub fn consumers_of_pool(pool: &str, found: &[ConsumerState]) -> Vec<String> {
    let (name, prefix) = (reader_name(pool), format!("noetl.commands.{}", segment(pool)));
    let filter_of = |reader: &ConsumerState| match reader.name.strip_prefix(&name)? {
        "" => Some(format!("{prefix}.>")),
        rest => {
            let shard: u32 = rest.strip_prefix("-shard-")?.parse().ok()?;
            Some(format!("{prefix}.shard.{shard}.>"))
        }
    };
    let is_ours = |reader: &&ConsumerState| {
        filter_of(reader).is_some_and(|filter| reader.filters == [filter])
    };
    found.iter().filter(is_ours).map(|reader| reader.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(name: &str, filter: &str) -> ConsumerState {
        let filters = vec![filter.to_owned()];
        ConsumerState { name: name.to_owned(), filters, pending: 0, unacknowledged: 0 }
    }

    #[test]
    fn a_pool_has_its_own_reader_or_those_of_its_shards() {
        let found = [
            reader("worker-pool", "noetl.commands.shared.>"),
            reader("worker-pool-gpu", "noetl.commands.gpu.>"),
            reader("worker-pool-system-shard-0", "noetl.commands.system.shard.0.>"),
            reader("worker-pool-system-shard-1", "noetl.commands.system.shard.1.>"),
            reader("worker-pool-a_b", "noetl.commands.a_b.>"),
        ];
        assert_eq!(consumers_of_pool("shared", &found), ["worker-pool"]);
        assert_eq!(consumers_of_pool("gpu", &found), ["worker-pool-gpu"]);
        assert_eq!(consumers_of_pool("a b", &found), ["worker-pool-a_b"]);
        let shards = ["worker-pool-system-shard-0", "worker-pool-system-shard-1"];
        assert_eq!(consumers_of_pool("system", &found), shards);
        assert!(consumers_of_pool("other", &found).is_empty());
    }

    #[test]
    fn a_reader_with_another_filter_is_nobodys() {
        let found = [
            reader("worker-pool", "noetl.commands.>"),
            reader("worker-pool-gpu", "noetl.commands"),
            reader("worker-pool-system-shard-0", "noetl.commands.system.shard.1.>"),
            reader("worker-pool-system-shard-x", "noetl.commands.system.shard.x.>"),
        ];
        for pool in ["shared", "gpu", "system"] {
            assert!(consumers_of_pool(pool, &found).is_empty(), "{pool}");
        }
        let mut two = reader("worker-pool", "noetl.commands.shared.>");
        two.filters.push("noetl.commands.gpu.>".to_owned());
        assert!(consumers_of_pool("shared", &[two]).is_empty());
    }
}

//! Names of the stream, subjects, and consumers that announce commands to workers.

use std::borrow::Cow;

use noetl_bus::ConsumerState;
use noetl_bus::subject::is_token;
use noetl_model::DEFAULT_POOL;

/// Name of the stream that commands are announced on.
pub const COMMAND_STREAM: &str = "noetl_commands";

/// Consumer of the default pool. Published workers use this name by default.
const CONSUMER: &str = "worker-pool";

/// Length limit of a pool's subject token, in characters.
pub const SEGMENT_MAX: usize = 64;

/// Returns the names of the consumers that serve exactly this pool: the one named after it, and
/// those of its shards if it is sharded. Empty if the server has not created any. Skips consumers
/// with a different filter, because a worker that acks their messages would ack those of other
/// pools.
pub fn consumers_of_pool(pool: &str, found: &[ConsumerState]) -> Vec<String> {
    let (name, prefix) = (consumer_name(pool), format!("noetl.commands.{}", segment(pool)));
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

/// Returns the name of a pool's consumer. The consumers of its shards have this name as prefix.
pub fn consumer_name(pool: &str) -> String {
    match &*segment(pool) {
        DEFAULT_POOL => CONSUMER.to_owned(),
        other => format!("{CONSUMER}-{other}"),
    }
}

/// Returns the subject token of a pool: its name, with an underscore for each character that a
/// subject cannot contain, cut to [`SEGMENT_MAX`].
pub fn segment(pool: &str) -> Cow<'_, str> {
    if is_token(pool) && pool.len() <= SEGMENT_MAX {
        return Cow::Borrowed(pool);
    }
    let plain =
        |c: char| if c.is_ascii() && is_token(c.encode_utf8(&mut [0; 4])) { c } else { '_' };
    let made: String = pool.chars().map(plain).take(SEGMENT_MAX).collect();
    if made.is_empty() { Cow::Borrowed(DEFAULT_POOL) } else { Cow::Owned(made) }
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
    fn a_consumer_with_another_filter_is_not_of_a_pool() {
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

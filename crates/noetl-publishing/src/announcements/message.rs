//! Subjects, consumers, and payload of announcements.

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::{Consumer, ConsumerState, StreamMessage, StreamSettings};
use noetl_model::trace::TraceContext;
use noetl_model::{DEFAULT_POOL, ExecutionId, command_name, shard_for};
use noetl_work::{consumer_name, segment};
use serde::Serialize;

use super::{AGE_MAX, AnnouncerOptions, DUPLICATE_WINDOW, PendingAnnouncement, STREAM, SUBJECTS};

/// Pool whose commands can be spread over several subjects.
const SYSTEM: &str = "system";

/// Pools whose consumers are created with the stream, so an autoscaler finds them without any
/// worker.
const POOLS: [&str; 3] = [DEFAULT_POOL, SYSTEM, "subscription"];

/// Time after which the bus redelivers an announcement that was not acked.
const ACK_WAIT: Duration = Duration::from_secs(30);

#[derive(Serialize)]
struct Announcement<'a> {
    command_id: &'a str,
    event_id: i64,
    execution_id: i64,
    execution_pool: &'a str,
    server_url: &'a str,
    step: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceContext>,
}

/// Maps announcements to subjects and consumers.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    server_url: Arc<str>,
    system_shards: u32,
}

impl Routes {
    pub(super) fn new(options: &AnnouncerOptions) -> Self {
        Self {
            server_url: Arc::from(options.server_url.as_str()),
            system_shards: options.system_shards.max(1),
        }
    }

    /// Returns the stream settings with the initial consumers.
    pub(super) fn settings(&self) -> StreamSettings {
        let consumers = POOLS.iter().flat_map(|pool| self.consumers(pool)).collect();
        self.with(consumers)
    }

    /// Returns the stream settings with the consumers of `pool`.
    pub(super) fn settings_for(&self, pool: &str) -> StreamSettings {
        self.with(self.consumers(pool))
    }

    fn with(&self, consumers: Vec<Consumer>) -> StreamSettings {
        StreamSettings {
            name: STREAM.to_owned(),
            subjects: SUBJECTS.map(str::to_owned).into(),
            duplicate_window: DUPLICATE_WINDOW,
            age_max: AGE_MAX,
            consumers,
        }
    }

    /// Returns the consumers of `pool`.
    pub(super) fn consumers(&self, pool: &str) -> Vec<Consumer> {
        let name = consumer_name(pool);
        let consumer = |name: String, prefix: &str| Consumer {
            name,
            filter: format!("{prefix}.>"),
            ack_wait: ACK_WAIT,
        };
        let shard_of = |prefix: &str| prefix.rsplit('.').next().unwrap_or_default().to_owned();
        match self.prefixes(pool).as_slice() {
            [only] => vec![consumer(name, only)],
            shards => shards
                .iter()
                .map(|prefix| consumer(format!("{name}-shard-{}", shard_of(prefix)), prefix))
                .collect(),
        }
    }

    /// Returns the subject prefixes of `pool`: one per shard if the pool is sharded.
    fn prefixes(&self, pool: &str) -> Vec<String> {
        let segment = segment(pool);
        if segment == SYSTEM && self.system_shards > 1 {
            let shard = |number| format!("noetl.commands.{SYSTEM}.shard.{number}");
            return (0..self.system_shards).map(shard).collect();
        }
        vec![format!("noetl.commands.{segment}")]
    }

    /// Returns the subject of an announcement for this execution.
    fn subject(&self, pool: &str, execution: ExecutionId) -> String {
        let prefixes = self.prefixes(pool);
        let count = u32::try_from(prefixes.len()).unwrap_or(u32::MAX);
        let place = shard_for(execution, count) as usize;
        format!("{}.{execution}", prefixes.get(place).unwrap_or(&prefixes[0]))
    }

    /// Returns the `number`th announcement of a command.
    pub(super) fn message(&self, note: &PendingAnnouncement, number: u32) -> StreamMessage {
        let name = command_name(note.execution, &note.step, note.command);
        let said = Announcement {
            command_id: &name,
            event_id: note.command.get(),
            execution_id: note.execution.get(),
            execution_pool: &segment(&note.pool),
            server_url: &self.server_url,
            step: &note.step,
            trace: note.trace.as_ref(),
        };
        StreamMessage {
            subject: self.subject(&note.pool, note.execution),
            id: format!("{name}#{number}"),
            // Numbers and strings always serialize.
            payload: serde_json::to_vec(&said).unwrap_or_default(),
        }
    }

    /// Returns the number of announcements of a pool that its consumers have not acked. Of several
    /// consumers the smallest backlog counts, because the others may have no worker.
    pub(super) fn backlog(&self, pool: &str, readers: &[ConsumerState]) -> u64 {
        let of = |prefix: String| {
            let subject = format!("{prefix}.0");
            let reading = readers.iter().filter(|reader| reader.reads(&subject));
            reading.map(ConsumerState::backlog).min().unwrap_or(0)
        };
        self.prefixes(pool).into_iter().map(of).fold(0, u64::saturating_add)
    }

    /// Returns the number of announcements of a pool that were not delivered. Of several consumers
    /// the largest number counts, because an autoscaler may watch any of them.
    pub(super) fn pending(&self, pool: &str, readers: &[ConsumerState]) -> u64 {
        let of = |prefix: String| {
            let subject = format!("{prefix}.0");
            let reading = readers.iter().filter(|reader| reader.reads(&subject));
            reading.map(|reader| reader.pending).max().unwrap_or(0)
        };
        self.prefixes(pool).into_iter().map(of).fold(0, u64::saturating_add)
    }

    /// Returns filters that match the announcements of this pool and no other.
    pub(super) fn filters(&self, pool: &str) -> Vec<String> {
        self.prefixes(pool).into_iter().map(|prefix| format!("{prefix}.>")).collect()
    }

    /// Returns `true` if all consumers of the pool exist.
    pub(super) fn has_consumers(&self, pool: &str, readers: &[ConsumerState]) -> bool {
        let is_there = |wanted: &Consumer| readers.iter().any(|reader| reader.name == wanted.name);
        self.consumers(pool).iter().all(is_there)
    }

    /// Returns the consumers of a pool that exist by name but match none of its announcements.
    pub(super) fn misfiltered_consumers(
        &self,
        pool: &str,
        readers: &[ConsumerState],
    ) -> Vec<Consumer> {
        let is_misled = |wanted: &Consumer| {
            let subject = wanted.filter.replace('>', "0");
            readers.iter().any(|found| found.name == wanted.name && !found.reads(&subject))
        };
        self.consumers(pool).into_iter().filter(is_misled).collect()
    }

    /// Returns the pools whose consumers are created with the stream.
    pub(super) const fn pools() -> [&'static str; 3] {
        POOLS
    }
}

#[cfg(test)]
mod tests {
    use noetl_model::CommandId;
    use serde_json::{Value, json};

    use noetl_work::SEGMENT_MAX;

    use super::*;

    fn routes(shards: u32) -> Routes {
        let url = "http://127.0.0.1:57182/";
        Routes::new(&AnnouncerOptions { system_shards: shards, ..AnnouncerOptions::new(url) })
    }

    fn note(pool: &str, execution: i64) -> PendingAnnouncement {
        PendingAnnouncement {
            execution: ExecutionId::new(execution),
            command: CommandId::new(380_436_272_356_814_848),
            step: Arc::from("start"),
            pool: Arc::from(pool),
            trace: None,
        }
    }

    fn reader(name: &str, filter: &str, pending: u64, unacknowledged: u64) -> ConsumerState {
        let filters = vec![filter.to_owned()];
        ConsumerState { name: name.to_owned(), filters, pending, unacknowledged }
    }

    #[test]
    fn an_announcement_has_the_form_published_workers_read() {
        let made = routes(1).message(&note("shared", 380_436_272_340_037_632), 1);
        assert_eq!(made.subject, "noetl.commands.shared.380436272340037632");
        assert_eq!(made.id, "380436272340037632:start:380436272356814848#1");
        assert_eq!(
            serde_json::from_slice::<Value>(&made.payload).unwrap(),
            json!({
                "command_id": "380436272340037632:start:380436272356814848",
                "event_id": 380_436_272_356_814_848_i64,
                "execution_id": 380_436_272_340_037_632_i64,
                "execution_pool": "shared",
                "server_url": "http://127.0.0.1:57182",
                "step": "start",
            })
        );
    }

    #[test]
    fn an_announcement_carries_the_span_of_its_command() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace = TraceContext::read(parent, Some("a=1"));
        let made = routes(1).message(&PendingAnnouncement { trace, ..note("shared", 1) }, 1);
        let said: Value = serde_json::from_slice(&made.payload).unwrap();
        assert_eq!(said["trace"], json!({"traceparent": parent, "tracestate": "a=1"}));
    }

    #[test]
    fn only_the_system_pool_is_spread() {
        let subject =
            |shards, pool, execution| routes(shards).message(&note(pool, execution), 1).subject;
        assert_eq!(subject(4, "system", 42), "noetl.commands.system.shard.3.42");
        assert_eq!(subject(4, "system", 325), "noetl.commands.system.shard.0.325");
        assert_eq!(subject(4, "shared", 42), "noetl.commands.shared.42");
        assert_eq!(subject(1, "system", 42), "noetl.commands.system.42");
        let names = |shards, pool: &str| -> Vec<(String, String)> {
            let made = routes(shards).consumers(pool).into_iter();
            made.map(|consumer| (consumer.name, consumer.filter)).collect()
        };
        let pair = |name: &str, filter: &str| (name.to_owned(), filter.to_owned());
        assert_eq!(names(2, "shared"), [pair("worker-pool", "noetl.commands.shared.>")]);
        assert_eq!(names(1, "system"), [pair("worker-pool-system", "noetl.commands.system.>")]);
        assert_eq!(
            names(2, "system"),
            [
                pair("worker-pool-system-shard-0", "noetl.commands.system.shard.0.>"),
                pair("worker-pool-system-shard-1", "noetl.commands.system.shard.1.>"),
            ]
        );
    }

    #[test]
    fn a_pool_that_no_subject_can_name_gets_a_name_that_one_can() {
        for (pool, expected) in
            [("gpu-2", "gpu-2"), ("a b", "a_b"), ("a.>", "a__"), ("ü", "_"), ("", "shared")]
        {
            assert_eq!(segment(pool), expected, "{pool:?}");
        }
        assert_eq!(segment(&"x".repeat(1000)).len(), SEGMENT_MAX);
        let made = routes(1).message(&note("a b.*", 1), 1);
        assert_eq!(made.subject, "noetl.commands.a_b__.1");
        let said: Value = serde_json::from_slice(&made.payload).unwrap();
        assert_eq!(said["execution_pool"], "a_b__", "what its worker compares with its filter");
    }

    #[test]
    fn the_most_advanced_consumer_determines_the_backlog() {
        let shared = "noetl.commands.shared.>";
        let routes = routes(1);
        assert_eq!(routes.backlog("shared", &[]), 0);
        let ours = reader("worker-pool", shared, 5, 2);
        let others = reader("own", "noetl.commands.>", 1, 0);
        assert_eq!(routes.backlog("shared", std::slice::from_ref(&ours)), 7);
        assert_eq!(routes.backlog("shared", &[ours.clone(), others]), 1);
        assert_eq!(routes.backlog("gpu", &[ours]), 0);
    }

    #[test]
    fn the_readers_of_a_spread_pool_are_counted_together() {
        let routes = routes(2);
        let of = |shard: u32, pending| {
            let filter = format!("noetl.commands.system.shard.{shard}.>");
            reader(&format!("worker-pool-system-shard-{shard}"), &filter, pending, 0)
        };
        assert_eq!(routes.backlog("system", &[of(0, 2), of(1, 3)]), 5);
        assert!(routes.has_consumers("system", &[of(0, 2), of(1, 3)]));
        assert!(!routes.has_consumers("system", &[of(0, 2)]));
    }

    #[test]
    fn a_consumer_with_a_wrong_filter_is_found() {
        let bare = reader("worker-pool", "noetl.commands", 0, 0);
        let readers = [bare, reader("own", "noetl.commands", 0, 0)];
        let corrected = routes(1).misfiltered_consumers("shared", &readers);
        assert_eq!(corrected, routes(1).consumers("shared"));
        let wide = reader("worker-pool", "noetl.commands.>", 0, 0);
        assert_eq!(routes(1).misfiltered_consumers("shared", &[wide]), []);
        assert_eq!(routes(1).misfiltered_consumers("shared", &[]), []);
    }
}

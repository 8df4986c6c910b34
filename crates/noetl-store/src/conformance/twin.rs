//! Applies one random history to two stores and compares every read of both.
//!
//! The history is a function of its seed. It contains the operations of journals (starts, claims,
//! completions, late reports) and their failures (conflicts, repeats, IDs in use, several items for
//! one execution in a batch), in batches of random size. Between batches, it makes random calls to
//! all other parts of a store.

mod registry;
mod traffic;

use std::sync::Arc;

use noetl_model::row::EventRow;
use noetl_model::{CatalogId, CommandId, ExecutionId, Fact, Seq, Tenant, Timestamp, Value};
use serde_json::json;

use self::registry::Registry;
use self::traffic::Traffic;
use super::story::{
    Story, began, called, claimed, completed, entered, every_end, every_fact, expired, failed,
    issued, said, stopped,
};
use crate::{Append, ExecutionFilter, ExecutionStatus, NewEntry, ReadBound, Store};

const TENANTS: [&str; 3] = ["default", "acme", "Default"];
const PATHS: [&str; 4] = ["demo/a", "demo/B", "prod/ä", "prod/a_b%"];

/// Applies the history of `seed` to both stores. Panics with the seed if they differ.
pub async fn compare(seed: u64, batches: usize, left: Arc<dyn Store>, right: Arc<dyn Store>) {
    let mut history = History { random: Random(seed), stories: Vec::new(), entries: 0 };
    let mut traffic = Traffic::default();
    let mut registry = Registry::default();
    for number in 0..batches {
        let place = format!("seed {seed}, batch {number}");
        if history.random.below(8) == 0 {
            let (tenant, entry) = history.entry();
            let one = left.register(&tenant, entry.clone()).await;
            let other = right.register(&tenant, entry).await;
            assert_eq!(one.expect(&place), other.expect(&place), "{place}");
        }
        for _ in 0..4 {
            traffic.step(&mut history.random, &place, &*left, &*right).await;
            registry.step(&mut history.random, &place, &*left, &*right).await;
        }
        let mut batch = history.batch();
        traffic.send(&mut history.random, &mut batch);
        let one = left.commit(batch.clone()).await.expect(&place);
        let other = right.commit(batch).await.expect(&place);
        assert_eq!(one, other, "{place}");
    }
    history.compare_reads(seed, &*left, &*right).await;
    for story in &history.stories {
        let one = left.timers_of(story.id()).await.expect("a list");
        let other = right.timers_of(story.id()).await.expect("a list");
        assert_eq!(one, other, "seed {seed}, execution {}", story.id());
    }
    let place = format!("seed {seed}");
    traffic::compare_reads(&place, &*left, &*right).await;
    registry.compare_reads(&place, &*left, &*right).await;
}

/// SplitMix64: small, good enough, and the same on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a small bound");
        usize::try_from(self.next() % bound).expect("below a small bound")
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

struct History {
    random: Random,
    stories: Vec<Story>,
    entries: i64,
}

impl History {
    fn batch(&mut self) -> Vec<Append> {
        let size = self.random.below(6);
        (0..size).map(|_| self.append()).collect()
    }

    fn append(&mut self) -> Append {
        if self.stories.is_empty() || self.random.below(5) == 0 {
            return self.start();
        }
        let index = self.random.below(self.stories.len());
        let chance = self.random.below(12);
        let facts = self.facts(index);
        let story = &mut self.stories[index];
        match chance {
            0 => {
                // The append was decided on a log to which another process has appended.
                let mut late = story.clone();
                late.row.version = Seq(late.row.version.0.saturating_sub(1).max(1));
                late.then(facts)
            }
            1 => {
                let mut ahead = story.clone();
                let _lost = ahead.then(vec![said("lost")]);
                ahead.then(facts)
            }
            2 => Story::new(story.id().get()).of(story.tenant.as_str()).start(),
            3 => Story { key: 1, ..Story::new(story.id().get()) }.start(),
            _ => story.then(facts),
        }
    }

    fn start(&mut self) -> Append {
        let number = i64::try_from(self.stories.len()).expect("few stories");
        let mut story = Story::new(10 + number).of(self.random.pick(&TENANTS));
        story.row.path = Arc::from(self.random.pick(&PATHS));
        story.row.catalog = CatalogId::new(self.random.pick(&[1, 2]));
        story.row.started_at = Timestamp::from_micros(self.random.pick(&[100, 200, 300]));
        let append = story.start();
        self.stories.push(story);
        append
    }

    /// Returns one to three facts about any command of the story, issued or not.
    fn facts(&mut self, index: usize) -> Vec<Fact> {
        let count = 1 + self.random.below(3);
        let version = self.stories[index].row.version.0;
        let ended = self.stories[index].row.status.is_final();
        let places = usize::try_from(version).expect("a short log") + 1;
        let place = u64::try_from(self.random.below(places)).expect("a short log");
        let command = self.stories[index].command_at(place);
        let worker = self.random.pick(&["worker-1", "worker-2"]);
        let mut facts = Vec::new();
        for _ in 0..count {
            facts.push(match self.random.below(if ended { 9 } else { 12 }) {
                0 => claimed(command, worker),
                1 => began(command, worker),
                2 => completed(command),
                3 => failed(command),
                4 => expired(command),
                5 => stopped(command),
                6 => called(command, json!({"n": place, "text": worker})),
                7 => said(worker),
                8 => entered(worker),
                9 | 10 => issued(worker),
                _ if facts.iter().any(Fact::is_end) => said("after the end"),
                _ => self.random_fact(command),
            });
        }
        facts
    }

    fn random_fact(&mut self, command: CommandId) -> Fact {
        let ends = self.random.below(4) == 0;
        let mut facts = if ends { every_end() } else { every_fact(command) };
        facts.swap_remove(self.random.below(facts.len()))
    }

    fn entry(&mut self) -> (Tenant, NewEntry) {
        self.entries += 1;
        let entry = NewEntry {
            id: CatalogId::new(self.entries),
            path: self.random.pick(&PATHS).into(),
            kind: self.random.pick(&["playbook", "tool"]).into(),
            content: format!("n: {}", self.entries),
            layout: None,
            payload: Some(json!({"n": self.entries})),
            meta: None,
            at: Timestamp::from_micros(self.random.pick(&[1, 2])),
        };
        (Tenant::new(self.random.pick(&TENANTS)), entry)
    }

    async fn compare_reads(&self, seed: u64, left: &dyn Store, right: &dyn Store) {
        for story in &self.stories {
            self.compare_story(seed, story, left, right).await;
        }
        for tenant in TENANTS.map(Tenant::new) {
            for filter in filters() {
                let one = left.executions(&tenant, &filter).await.expect("a list");
                let other = right.executions(&tenant, &filter).await.expect("a list");
                assert_eq!(one, other, "seed {seed}, {tenant}, {filter:?}");
            }
            for kind in [None, Some("tool")] {
                let one = left.entries(&tenant, kind).await.expect("a list");
                let other = right.entries(&tenant, kind).await.expect("a list");
                assert_eq!(one, other, "seed {seed}, {tenant}, {kind:?}");
            }
            for path in PATHS {
                let one = left.entry_at(&tenant, path, None).await.expect("a read");
                let other = right.entry_at(&tenant, path, None).await.expect("a read");
                assert_eq!(one, other, "seed {seed}, {tenant}, {path}");
            }
        }
        let from = CommandId::new(i64::MIN);
        let one = left.open_commands(from, 1000).await.expect("a page");
        let other = right.open_commands(from, 1000).await.expect("a page");
        assert_eq!(one, other, "seed {seed}");
        let from = ExecutionId::new(i64::MIN);
        let one = left.unfinished(from, 1000).await.expect("a page");
        let other = right.unfinished(from, 1000).await.expect("a page");
        assert_eq!(one, other, "seed {seed}");
        let one = left.newest_id().await.expect("a read");
        let other = right.newest_id().await.expect("a read");
        assert_eq!(one, other, "seed {seed}");
    }

    async fn compare_story(&self, seed: u64, story: &Story, left: &dyn Store, right: &dyn Store) {
        let id = story.id();
        let one = left.read(id, Seq::START, 1000).await.expect("a log");
        let other = right.read(id, Seq::START, 1000).await.expect("a log");
        assert_eq!(one, other, "seed {seed}, execution {id}");
        for until in [
            ReadBound::End,
            ReadBound::Event(story.event_at(4)),
            ReadBound::Time(story.row.started_at),
        ] {
            let one = rows(left, story, until).await;
            let other = rows(right, story, until).await;
            assert_eq!(one, other, "seed {seed}, execution {id}, {until:?}");
        }
        let one = left.least_id_since(id, Seq(2)).await.expect("an id");
        let other = right.least_id_since(id, Seq(2)).await.expect("an id");
        assert_eq!(one, other, "seed {seed}, execution {id}");
        for tenant in TENANTS.map(Tenant::new) {
            let one = left.execution(&tenant, id).await.expect("a row");
            let other = right.execution(&tenant, id).await.expect("a row");
            assert_eq!(one, other, "seed {seed}, execution {id}, {tenant}");
        }
        let one = left.tenant_of(id).await.expect("a tenant");
        let other = right.tenant_of(id).await.expect("a tenant");
        assert_eq!(one, other, "seed {seed}, execution {id}");
        for place in 0..=story.row.version.0 {
            let command = story.command_at(place);
            let one = left.command(command).await.expect("a row");
            let other = right.command(command).await.expect("a row");
            assert_eq!(one, other, "seed {seed}, command {command}");
            let event = story.event_at(place);
            let one = left.find_event(id, event).await.expect("a place");
            let other = right.find_event(id, event).await.expect("a place");
            assert_eq!(one, other, "seed {seed}, event {event}");
        }
    }
}

/// Returns the rows of a story after its first. An adopted database formats their JSON differently,
/// so the JSON is compared by value.
async fn rows(
    store: &dyn Store,
    story: &Story,
    until: ReadBound,
) -> Vec<(EventRow, [Option<Value>; 3])> {
    let read = |text: String| serde_json::from_str(&text).expect("JSON");
    let rows = store.read_rows(story.id(), Some(story.event_at(1)), until, 50).await;
    let apart = |mut row: EventRow| {
        let texts = [row.result.take(), row.meta.take(), row.more.take()];
        (row, texts.map(|text| text.map(read)))
    };
    rows.expect("rows").into_iter().map(apart).collect()
}

fn filters() -> Vec<ExecutionFilter> {
    let all = ExecutionFilter { limit: 1000, ..ExecutionFilter::default() };
    let status = |status| ExecutionFilter { status: Some(status), ..all.clone() };
    let path = |text: &str| ExecutionFilter { path: Some(text.into()), ..all.clone() };
    vec![
        all.clone(),
        status(ExecutionStatus::Running),
        status(ExecutionStatus::Completed),
        path("A"),
        path("Ä"),
        path("_"),
        ExecutionFilter { catalog: Some(CatalogId::new(2)), offset: 1, limit: 3, ..path("demo") },
    ]
}

//! Applies one random history of secrets, variables, results, objects, and blobs to two stores that
//! share a clock, and compares every result and every read.
//!
//! The history is a function of its seed. It consists of chapters that use a few names of one kind
//! of object, so that calls affect one another. The clock moves by small steps or not at all, so
//! that objects expire right before, at, and after a call. Reads are compared after each chapter.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{
    AuditId, CatalogId, CredentialId, ExecutionId, ResultId, Tenant, Timestamp, Value,
};
use serde_json::json;

use super::clock::HandClock;
use super::story::Story;
use super::twin::Random;
use crate::{
    Append, AuditFilter, BlobRef, CacheKind, CredentialFilter, Digest, KeychainFilter,
    KeychainScope, NewCredential, NewKeychainEntry, NewResult, NewVariable, ResultSummary,
    SealedText, SecretUse, Store, VariableKind, collect_garbage,
};

const TENANTS: [&str; 3] = ["default", "acme", "Default"];
const NAMES: [&str; 6] = ["a", "A", "a/b", "ä", "a_%", ""];
const EXECUTIONS: [i64; 3] = [10, 11, 12];

/// Number of calls in a chapter: enough for several calls about one object, and few enough that a
/// later call does not hide a difference before it is read.
const CHAPTER_STEPS: usize = 25;

/// Subjects of a chapter, as ranges of the calls that [`History::step`] makes.
const SUBJECTS: [[usize; 2]; 7] = [[0, 0], [1, 2], [3, 3], [4, 5], [6, 7], [8, 8], [9, 9]];

/// Applies the history of `seed` to both stores, whose clock is `clock`. Panics with the seed if
/// they differ.
pub async fn compare(
    seed: u64,
    chapters: usize,
    clock: &HandClock,
    left: Arc<dyn Store>,
    right: Arc<dyn Store>,
) {
    let stories = EXECUTIONS.map(Story::new).to_vec();
    let mut history = History { random: Random(seed), stories, chapter: Chapter::default() };
    let twins = Twins { left, right };
    for chapter in 0..chapters {
        history.turn_page();
        for step in 0..CHAPTER_STEPS {
            let place = format!("seed {seed}, chapter {chapter}, step {step}");
            let passes = history.random.pick(&[0, 0, 0, 1, 5, 1000]);
            clock.pass(Duration::from_micros(passes));
            history.step(&twins, &place, noetl_model::Clock::now(clock)).await;
        }
        compare_reads(&format!("seed {seed}, chapter {chapter}"), &twins).await;
    }
}

struct Twins {
    left: Arc<dyn Store>,
    right: Arc<dyn Store>,
}

/// Calls both stores and compares the results. Error messages depend on the driver, so only the
/// fact that both failed is compared.
macro_rules! both {
    ($twins:expr, $place:expr, $store:ident => $call:expr) => {{
        let $store = &$twins.left;
        let one = $call.await.map_err(|_| "failed");
        let $store = &$twins.right;
        let other = $call.await.map_err(|_| "failed");
        same($place, stringify!($call), &one, &other);
        one
    }};
}

fn same<T: PartialEq + Debug>(place: &str, call: &str, one: &T, other: &T) {
    assert_eq!(one, other, "{place}: {call}");
}

struct History {
    random: Random,
    stories: Vec<Story>,
    chapter: Chapter,
}

/// Subject of the next calls.
#[derive(Default)]
struct Chapter {
    subject: [usize; 2],
    tenants: [&'static str; 2],
    names: [&'static str; 2],
    executions: [i64; 2],
    contents: [usize; 2],
}

impl History {
    fn turn_page(&mut self) {
        self.chapter = Chapter {
            subject: self.random.pick(&SUBJECTS),
            tenants: [self.random.pick(&TENANTS), self.random.pick(&TENANTS)],
            names: [self.random.pick(&NAMES), self.random.pick(&NAMES)],
            executions: [self.random.pick(&EXECUTIONS), self.random.pick(&EXECUTIONS)],
            contents: [self.random.below(4), self.random.below(4)],
        };
    }

    async fn step(&mut self, twins: &Twins, place: &str, now: Timestamp) {
        let tenant = Tenant::new(self.random.pick(&self.chapter.tenants));
        let execution = ExecutionId::new(self.random.pick(&self.chapter.executions));
        let name = self.name();
        let limit = self.random.below(4);
        match self.random.pick(&self.chapter.subject) {
            0 => self.secrets(twins, place, &tenant).await,
            1 => {
                let new = self.entry(name, now);
                let _ = both!(twins, place, s => s.put_keychain_entry(&tenant, new.clone()));
            }
            2 => match self.random.below(4) {
                0 => drop(both!(twins, place, s => s.delete_keychain_entry(&tenant, name))),
                1 => drop(both!(twins, place, s => s.purge_keychain(limit))),
                _ => drop(both!(twins, place, s => s.use_keychain_entry(&tenant, name))),
            },
            3 => {
                let used = self.used(now);
                let _ = both!(twins, place, s => s.audit_secret(&tenant, used.clone()));
                let age = Duration::from_micros(self.random.pick(&[0, 5, 1000]));
                let limit = self.random.below(2);
                let _ = both!(twins, place, s => s.purge_secret_uses(age, limit));
            }
            4 => {
                let count = self.random.below(3);
                let new: Vec<NewVariable> = (0..count).map(|_| self.variable(now)).collect();
                let _ = both!(
                    twins, place, s => s.put_variables(&tenant, execution, new.clone())
                );
            }
            5 => match self.random.below(6) {
                0 => drop(both!(twins, place, s => s.delete_variable(&tenant, execution, name))),
                1 => drop(both!(twins, place, s => s.delete_variables(&tenant, execution))),
                2 => {
                    // With a small limit, the contract does not define which variables are purged.
                    let _ = both!(twins, place, s => s.purge_variables(100));
                }
                _ => drop(both!(twins, place, s => s.read_variable(&tenant, execution, name))),
            },
            6 => {
                let new = self.result(execution, name, now);
                let _ = both!(twins, place, s => s.put_result(&tenant, new.clone()));
            }
            7 => match self.random.below(3) {
                0 => drop(both!(twins, place, s => s.purge_results(limit))),
                1 => drop(both!(twins, place, s => s.delete_results(&tenant, execution, limit))),
                _ => {
                    let id = ResultId::new(self.number());
                    let _ = both!(twins, place, s => s.result_data(&tenant, execution, name, id));
                }
            },
            8 => self.bytes(twins, place, name).await,
            _ => self.content(twins, place).await,
        }
    }

    async fn secrets(&mut self, twins: &Twins, place: &str, tenant: &Tenant) {
        let id = CredentialId::new(self.number());
        match self.random.below(4) {
            0 => drop(both!(twins, place, s => s.delete_credential(tenant, id))),
            _ => {
                let text = self.name();
                let new = NewCredential {
                    id,
                    name: self.name().into(),
                    kind: self.random.pick(&["postgres", "http"]).into(),
                    sealed: SealedText::new(text),
                    schema: self.value(),
                    meta: self.value(),
                    tags: vec![text.into(); self.random.below(3)],
                    description: self.maybe(text.to_owned()),
                };
                let _ = both!(twins, place, s => s.put_credential(tenant, new.clone()));
            }
        }
    }

    async fn bytes(&mut self, twins: &Twins, place: &str, name: &str) {
        let version = self.random.pick(&[-1, 1, 2]);
        let bytes = vec![7; self.random.below(5)];
        match self.random.below(6) {
            0 => drop(both!(twins, place, s => s.delete_object(name))),
            1 => drop(both!(twins, place, s => s.delete_plugin(name, version))),
            2 | 3 => drop(both!(twins, place, s => s.put_object(name, "x/y", bytes.clone()))),
            _ => {
                let _ = both!(twins, place, s => s.put_plugin(name, version, "x/y", bytes.clone()));
            }
        }
    }

    async fn content(&mut self, twins: &Twins, place: &str) {
        let blob = content(self.random.pick(&self.chapter.contents));
        let digest = BlobRef::from_bytes(&blob, "x/y").digest;
        let index = self.random.below(self.stories.len());
        match self.random.below(8) {
            0 => drop(both!(twins, place, s => s.touch_blob(digest))),
            1 => {
                let page = both!(twins, place, s => s.blobs(None, 1)).expect(place);
                if let Some(seen) = page.blobs.first().copied() {
                    let at = seen.written_at;
                    let _ = both!(twins, place, s => s.delete_blob(seen.digest, at));
                }
            }
            2 => {
                let execution = self.stories[index].id();
                let _ = both!(twins, place, s => s.drop_references(execution));
            }
            3 => {
                let grace = Duration::from_micros(self.random.pick(&[0, 5, 1000]));
                let one =
                    collect_garbage(&*twins.left, &*twins.left, grace, false).await.expect(place);
                let other = collect_garbage(&*twins.right, &*twins.right, grace, false).await;
                assert_eq!(format!("{one:?}"), format!("{:?}", other.expect(place)), "{place}");
            }
            4 | 5 => drop(both!(twins, place, s => s.put_blob(blob.clone(), "x/y"))),
            _ => {
                let story = &mut self.stories[index];
                let append = match story.row.version.0 {
                    0 => story.start(),
                    _ => story.then(vec![super::story::said("more")]),
                };
                let append = Append { blobs: vec![digest], ..append };
                let _ = both!(twins, place, s => s.commit(vec![append.clone()]));
            }
        }
    }

    fn entry(&mut self, key: &str, now: Timestamp) -> NewKeychainEntry {
        NewKeychainEntry {
            cache_key: key.into(),
            name: self.name().into(),
            catalog: CatalogId::new(self.random.pick(&[1, 2])),
            credential_kind: "secret".into(),
            cache: self.random.pick(&[CacheKind::Secret, CacheKind::Token]),
            scope: self.random.pick(&[KeychainScope::Local, KeychainScope::Shared]),
            execution: self.execution(),
            parent: self.execution(),
            sealed: SealedText::new("sealed"),
            schema: self.value(),
            expires_at: self.expiry(now),
            auto_renew: self.random.below(2) == 0,
            renew_config: self.value(),
        }
    }

    fn used(&mut self, now: Timestamp) -> SecretUse {
        SecretUse {
            id: AuditId::new(self.number()),
            at: Timestamp::from_micros(now.as_micros() - self.random.pick(&[0, 1, 10])),
            credential: self.name().into(),
            operation: "resolve".into(),
            outcome: self.random.pick(&["ok", "denied"]).into(),
            worker: self.maybe("worker-1".to_owned()),
            execution: self.execution(),
            parent: self.execution(),
            server_region: self.maybe("eu".to_owned()),
            broker_region: None,
            key_version: self.maybe("v1".to_owned()),
            notes: None,
        }
    }

    fn variable(&mut self, now: Timestamp) -> NewVariable {
        NewVariable {
            name: self.name().into(),
            kind: self.random.pick(&VariableKind::ALL),
            value: self.value().unwrap_or_default(),
            source_step: self.maybe("step".to_owned()),
            scope: self.maybe("shared".to_owned()),
            expires_at: self.expiry(now),
        }
    }

    fn result(&mut self, execution: ExecutionId, name: &str, now: Timestamp) -> NewResult {
        let summary = ResultSummary {
            id: ResultId::new(self.number()),
            execution,
            name: name.into(),
            scope: "execution".into(),
            source_step: self.maybe("step".to_owned()),
            bytes: self.random.next() >> 1,
            sha256: "00".into(),
            media_type: "application/json".into(),
            expires_at: self.expiry(now),
        };
        NewResult { summary, data: self.value().unwrap_or_default() }
    }

    fn name(&mut self) -> &'static str {
        self.random.pick(&self.chapter.names)
    }

    fn number(&mut self) -> i64 {
        self.random.pick(&[1, 2, 3, 4, 5, 6, 7, 8])
    }

    fn execution(&mut self) -> Option<ExecutionId> {
        let id = self.random.pick(&EXECUTIONS);
        self.maybe(ExecutionId::new(id))
    }

    fn expiry(&mut self, now: Timestamp) -> Option<Timestamp> {
        let micros = now.as_micros() + self.random.pick(&[-1, 0, 0, 1, 6, 5000]);
        self.maybe(Timestamp::from_micros(micros))
    }

    fn value(&mut self) -> Option<Value> {
        let value = [json!({"b": 1.5, "a": ["ä"]}), Value::Null, json!(-3)];
        let value = value[self.random.below(3)].clone();
        self.maybe(value)
    }

    fn maybe<T>(&mut self, value: T) -> Option<T> {
        (self.random.below(2) == 0).then_some(value)
    }
}

fn content(number: usize) -> Vec<u8> {
    vec![9; number]
}

async fn compare_reads(place: &str, twins: &Twins) {
    for tenant in TENANTS.map(Tenant::new) {
        compare_secrets(place, twins, &tenant).await;
        for execution in EXECUTIONS.map(ExecutionId::new) {
            let _ = both!(twins, place, s => s.variables(&tenant, execution));
            let from = ResultId::new(0);
            let _ = both!(twins, place, s => s.results(&tenant, execution, from, 100));
            let _ = both!(twins, place, s => s.results(&tenant, execution, ResultId::new(3), 2));
        }
    }
    for name in NAMES {
        let _ = both!(twins, place, s => s.object(name));
        let _ = both!(twins, place, s => s.objects(name, Some("a"), 3));
        let _ = both!(twins, place, s => s.plugin(name, None));
        let _ = both!(twins, place, s => s.plugin(name, Some(1)));
        let _ = both!(twins, place, s => s.plugins(name, Some(("a", 1)), 3));
        let _ = both!(twins, place, s => s.plugins(name, None, 100));
    }
    for execution in EXECUTIONS.map(ExecutionId::new) {
        let _ = both!(twins, place, s => s.references(execution));
    }
    let all: Vec<BlobRef> =
        (0..4).map(|number| BlobRef::from_bytes(&content(number), "x/y")).collect();
    let digests: Vec<Digest> = all.iter().map(|blob| blob.digest).collect();
    let _ = both!(twins, place, s => s.unreferenced(&digests));
    let _ = both!(twins, place, s => s.blobs(None, 100));
    for blob in &all {
        let _ = both!(twins, place, s => s.blob(blob));
    }
}

async fn compare_secrets(place: &str, twins: &Twins, tenant: &Tenant) {
    for text in [None, Some("A".to_owned()), Some("_".to_owned())] {
        for kind in [None, Some("http".to_owned())] {
            let filter = CredentialFilter { kind, text: text.clone() };
            let _ = both!(twins, place, s => s.credentials(tenant, &filter));
        }
    }
    for name in NAMES {
        let _ = both!(twins, place, s => s.credential_named(tenant, name));
        let _ = both!(twins, place, s => s.keychain_entry(tenant, name));
    }
    for id in 1..=8 {
        let _ = both!(twins, place, s => s.credential(tenant, CredentialId::new(id)));
    }
    for filter in [
        KeychainFilter::default(),
        KeychainFilter { catalog: Some(CatalogId::new(1)), execution: None },
        KeychainFilter { catalog: None, execution: Some(ExecutionId::new(10)) },
    ] {
        let _ = both!(twins, place, s => s.keychain_entries(tenant, &filter));
    }
    let all = AuditFilter { limit: 100, ..AuditFilter::default() };
    for filter in [
        all.clone(),
        AuditFilter { limit: 2, credential: Some("a".into()), ..all.clone() },
        AuditFilter { execution: Some(ExecutionId::new(11)), ..all },
    ] {
        let _ = both!(twins, place, s => s.secret_uses(tenant, &filter));
    }
    let _ = both!(twins, place, s => s.audit_chain());
    let _ = both!(twins, place, s => s.audit_links(0, 1000));
}

//! Cases about commands that remote workers hold, and about pending commands.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use noetl_model::event::{Callback, ParkReason};
use noetl_model::{CommandId, Fact, Tenant, Timestamp};

use super::story::{Story, began, claimed, completed, expired, issued_for, write};
use crate::{Append, CommandFilter, HeldBy, Store};

const LATER: Duration = Duration::from_secs(600);

/// Starts executions and claims the first command of each for a worker.
async fn held(store: &dyn Store, numbers: &[i64], worker: &str) -> Vec<Story> {
    let mut stories = Vec::new();
    for number in numbers {
        let mut story = Story::new(*number);
        write(store, story.start()).await;
        write(store, story.then(vec![claimed(story.command_at(3), worker)])).await;
        stories.push(story);
    }
    stories
}

/// Returns the commands whose leases have expired.
pub(super) async fn ended(store: &dyn Store) -> Vec<CommandId> {
    let rows = store.claim_expired(100, LATER).await.expect("an answer");
    rows.iter().map(|row| row.id).collect()
}

async fn pending(store: &dyn Store, wanted: &CommandFilter, limit: usize) -> Vec<CommandId> {
    let rows = store.pending_commands(wanted, limit).await.expect("a page");
    rows.iter().map(|row| row.id).collect()
}

pub async fn a_released_lease_is_claimed_once(store: Arc<dyn Store>) {
    let stories = held(&*store, &[10, 11], "w").await;
    assert_eq!(ended(&*store).await, [], "both leases last");
    assert_eq!(store.release_leases(None, "another").await.expect("an answer"), 0);
    assert_eq!(store.release_leases(None, "w").await.expect("an answer"), 2);
    let mut taken = ended(&*store).await;
    taken.sort_unstable();
    assert_eq!(taken, [stories[0].command_at(3), stories[1].command_at(3)]);
    assert_eq!(ended(&*store).await, [], "they come again later");
    assert_eq!(store.claim_expired(0, LATER).await.expect("an answer"), []);
}

pub async fn an_expired_lease_is_claimed_again_until_its_command_ends(store: Arc<dyn Store>) {
    let mut stories = held(&*store, &[10], "w").await;
    let id = stories[0].command_at(3);
    store.release_leases(None, "w").await.expect("an answer");
    for _ in 0..2 {
        let taken = store.claim_expired(1, Duration::ZERO).await.expect("an answer");
        assert_eq!(taken.iter().map(|row| row.id).collect::<Vec<_>>(), [id]);
        assert_eq!(taken[0].worker.as_deref(), Some("w"));
    }
    write(&*store, stories[0].then(vec![expired(id)])).await;
    assert_eq!(ended(&*store).await, []);
    assert_eq!(store.release_leases(None, "w").await.expect("an answer"), 0, "nothing is held");
}

pub async fn a_worker_renews_leases_that_it_names_and_owns(store: Arc<dyn Store>) {
    let mut stories = held(&*store, &[10, 11, 12], "w").await;
    let others = held(&*store, &[13], "other").await;
    let ids: Vec<CommandId> = stories.iter().map(|story| story.command_at(3)).collect();
    write(&*store, stories[2].then(vec![completed(ids[2])])).await;
    let named = [ids[2], others[0].command_at(3), ids[0], CommandId::new(4)];
    let renewed = store.renew_leases(None, "w", &named, Duration::ZERO).await;
    assert_eq!(renewed.expect("an answer"), [ids[0]], "neither over nor another's nor unknown");
    assert_eq!(ended(&*store).await, [ids[0]], "for no time at all");
    let renewed = store.renew_leases(None, "w", &ids, LATER).await;
    assert_eq!(renewed.expect("an answer"), [ids[0], ids[1]]);
    assert_eq!(store.renew_leases(None, "w", &[], LATER).await.expect("an answer"), []);
}

pub async fn leases_are_found_by_command(store: Arc<dyn Store>) {
    let mut stories = held(&*store, &[10, 11, 12], "w").await;
    let ids: Vec<CommandId> = stories.iter().map(|story| story.command_at(3)).collect();
    write(&*store, stories[2].then(vec![completed(ids[2])])).await;
    let mut waiting = Story::new(13);
    write(&*store, waiting.start()).await;
    let asked = [waiting.command_at(3), ids[2], ids[1], ids[0], ids[1], CommandId::new(4)];
    let told = store.held(&asked).await.expect("an answer");
    let known: Vec<_> = told.iter().map(|held| (held.id, held.execution)).collect();
    assert_eq!(known, [(ids[0], stories[0].id()), (ids[1], stories[1].id())]);
    store.renew_leases(None, "w", &ids[..1], LATER).await.expect("an answer");
    let renewed = store.held(&ids[..1]).await.expect("an answer");
    assert!(renewed[0].until > told[0].until, "{renewed:?} after {told:?}");
    assert_eq!(store.held(&ids[1..]).await.expect("an answer"), told[1..]);
    assert_eq!(store.held(&[]).await.expect("an answer"), []);
}

pub async fn leases_are_found_by_execution(store: Arc<dyn Store>) {
    let mut stories = held(&*store, &[10, 11], "w").await;
    let ids: Vec<CommandId> = stories.iter().map(|story| story.command_at(3)).collect();
    let rows = store.held_of(stories[0].id()).await.expect("an answer");
    let known: Vec<_> = rows.iter().map(|row| (row.id, row.worker.as_deref())).collect();
    assert_eq!(known, [(ids[0], Some("w"))]);
    write(&*store, stories[0].then(vec![completed(ids[0])])).await;
    assert_eq!(store.held_of(stories[0].id()).await.expect("an answer"), []);
    let mut waiting = Story::new(13);
    write(&*store, waiting.start()).await;
    assert_eq!(store.held_of(waiting.id()).await.expect("an answer"), [], "no worker claimed it");
}

pub async fn leases_renewed_by_command_are_not_renewed_by_worker_name(store: Arc<dyn Store>) {
    let mut stories = held(&*store, &[10, 11, 12], "w").await;
    let ids: Vec<CommandId> = stories.iter().map(|story| story.command_at(3)).collect();
    for story in &mut stories[..2] {
        write(&*store, story.then(vec![began(story.command_at(3), "w")])).await;
    }
    store.renew_leases(None, "w", &ids[..1], Duration::ZERO).await.expect("an answer");
    assert_eq!(store.touch_worker(None, "w").await.expect("an answer"), 1, "the second has begun");
    assert_eq!(ended(&*store).await, [ids[0]]);
    // Starting a command does not turn its lease into one of a published worker.
    store.renew_leases(None, "w", &ids[2..], Duration::ZERO).await.expect("an answer");
    write(&*store, stories[2].then(vec![began(ids[2], "w")])).await;
    assert_eq!(ended(&*store).await, [ids[2]]);
}

pub async fn only_remote_workers_have_leases(store: Arc<dyn Store>) {
    for (number, worker) in [(10, "local"), (11, "local:machine/1:4"), (12, "control-plane")] {
        held(&*store, &[number], worker).await;
        assert_eq!(store.release_leases(None, worker).await.expect("an answer"), 0, "{worker}");
    }
    assert_eq!(ended(&*store).await, []);
}

pub async fn a_command_that_waits_for_an_answer_has_no_lease(store: Arc<dyn Store>) {
    let mut stories = held(&*store, &[10], "w").await;
    let command = stories[0].command_at(3);
    let until = Timestamp::from_micros(1_904_067_200_000_000);
    let on = ParkReason::Callback(Callback { token: Arc::from("t"), until });
    let parked = Fact::CommandParked { command, step: Arc::from("a"), on };
    write(&*store, stories[0].then(vec![parked])).await;
    assert_eq!(store.release_leases(None, "w").await.expect("an answer"), 0);
    assert_eq!(ended(&*store).await, []);
}

pub async fn a_command_claimed_with_its_issue_has_a_lease(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let id = story.command_at(4);
    write(&*store, story.then(vec![issued_for("b", None), claimed(id, "w")])).await;
    assert_eq!(store.release_leases(None, "w").await.expect("an answer"), 1);
    assert_eq!(ended(&*store).await, [id]);
}

pub async fn a_claim_may_declare_renewal_by_command(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let [moved, inserted, lasting] = [3, 4, 5].map(|place| story.command_at(place));
    let facts = vec![
        issued_for("b", None),
        issued_for("c", None),
        claimed(moved, "w"),
        claimed(inserted, "w"),
        claimed(lasting, "w"),
    ];
    // The tool's timeout of 1.5 s limits none of these leases.
    let leases = vec![(moved, Duration::ZERO), (inserted, Duration::ZERO), (lasting, LATER)];
    write(&*store, Append { leases, ..story.then(facts) }).await;
    let held = store.held(&[lasting]).await.expect("an answer");
    let now = store.held(&[moved]).await.expect("an answer");
    assert_eq!(held[0].until, now[0].until.plus(LATER));
    write(&*store, story.then(vec![began(moved, "w"), began(lasting, "w")])).await;
    assert_eq!(
        store.touch_worker(None, "w").await.expect("an answer"),
        0,
        "not known by name only"
    );
    let mut over = ended(&*store).await;
    over.sort_unstable();
    assert_eq!(over, [moved, inserted]);
    let renewed = store.renew_leases(None, "w", &[lasting], Duration::ZERO).await;
    assert_eq!(renewed.expect("an answer"), [lasting]);
    assert_eq!(ended(&*store).await, [lasting]);
}

pub async fn lease_operations_are_scoped_by_tenant(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![claimed(story.command_at(3), "w")])).await;
    write(&*store, story.then(vec![began(story.command_at(3), "w")])).await;
    let (acme, other) = (Tenant::new("acme"), Tenant::new("other"));
    assert_eq!(store.touch_worker(Some(&other), "w").await.expect("an answer"), 0);
    assert_eq!(store.touch_worker(Some(&acme), "w").await.expect("an answer"), 1);
    assert_eq!(store.touch_worker(None, "w").await.expect("an answer"), 1);
    let ids = [story.command_at(3)];
    let renewed = store.renew_leases(Some(&other), "w", &ids, LATER).await;
    assert_eq!(renewed.expect("an answer"), []);
    assert_eq!(store.release_leases(Some(&other), "w").await.expect("an answer"), 0);
    assert_eq!(store.release_leases(Some(&acme), "w").await.expect("an answer"), 1);
}

pub async fn a_lower_limit_applies_to_workers_known_by_name(store: Arc<dyn Store>) {
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    let [known, named, other] = [3, 4, 5].map(|place| story.command_at(place));
    let facts = vec![
        issued_for("b", None),
        issued_for("c", None),
        claimed(known, "w"),
        claimed(named, "w"),
        claimed(other, "v"),
    ];
    write(&*store, story.then(facts)).await;
    store.renew_leases(None, "w", &[named], LATER).await.expect("an answer");
    let (acme, stranger) = (Tenant::new("acme"), Tenant::new("stranger"));
    let now = Duration::ZERO;
    let commands = async |scope: Option<&Tenant>, by: HeldBy<'_>| {
        let limited = store.limit_held(scope, by, now).await.expect("an answer");
        limited.iter().map(|limit| limit.commands).sum::<usize>()
    };
    assert_eq!(commands(Some(&stranger), HeldBy::Worker("w")).await, 0);
    assert_eq!(commands(Some(&acme), HeldBy::Worker("w")).await, 1);
    assert_eq!(store.held(&[named]).await.expect("an answer")[0].at_most, None);
    assert_eq!(ended(&*store).await, [known]);
    assert_eq!(commands(None, HeldBy::Commands(&[known, named])).await, 0, "no later limit");
    assert_eq!(commands(None, HeldBy::Commands(&[])).await, 0);
    assert_eq!(commands(None, HeldBy::Commands(&[other])).await, 1);
    assert_eq!(ended(&*store).await, [other]);
}

pub async fn concurrent_claims_never_share_an_expired_lease(store: Arc<dyn Store>) {
    held(&*store, &[10, 11, 12, 13, 14, 15], "w").await;
    store.release_leases(None, "w").await.expect("an answer");
    let takers = (0..4).map(|_| async { store.claim_expired(3, LATER).await.expect("an answer") });
    let mut taken: Vec<CommandId> =
        join_all(takers).await.concat().iter().map(|row| row.id).collect();
    taken.extend(ended(&*store).await);
    taken.sort_unstable();
    let all = taken.len();
    taken.dedup();
    assert_eq!((all, taken.len()), (6, 6));
}

pub async fn pending_commands_are_found_by_pool_tool_execution_and_tenant(store: Arc<dyn Store>) {
    let mut one = Story::new(10);
    write(&*store, one.start()).await;
    let mut two = Story::new(11).of("acme");
    write(&*store, two.start()).await;
    write(&*store, one.then(vec![issued_for("b", Some("gpu")), issued_for("c", None)])).await;
    let shared = [one.command_at(3), one.command_at(5), two.command_at(3)];
    let any = CommandFilter::default();
    assert_eq!(pending(&*store, &any, 9).await, shared);
    assert_eq!(pending(&*store, &any, 2).await, shared[..2]);
    assert_eq!(pending(&*store, &any, 0).await, []);
    let gpu = CommandFilter { pool: Some(Arc::from("gpu")), ..CommandFilter::default() };
    assert_eq!(pending(&*store, &gpu, 9).await, [one.command_at(4)]);
    let kinds = |kinds: &[&str]| CommandFilter {
        kinds: Some(kinds.iter().map(|kind| (*kind).to_owned()).collect()),
        ..CommandFilter::default()
    };
    assert_eq!(pending(&*store, &kinds(&["http", "python"]), 9).await, shared);
    assert_eq!(pending(&*store, &kinds(&["http"]), 9).await, []);
    assert_eq!(pending(&*store, &kinds(&[]), 9).await, []);
    let others = CommandFilter { not_of: Some(one.id()), ..CommandFilter::default() };
    assert_eq!(pending(&*store, &others, 9).await, shared[2..]);
    let acme = CommandFilter { tenant: Some(Tenant::new("acme")), ..CommandFilter::default() };
    assert_eq!(pending(&*store, &acme, 9).await, shared[2..]);
    let counts = store.pending_by_pool().await.expect("counts");
    assert_eq!(counts, [(Arc::from("gpu"), 1), (Arc::from("shared"), 3)]);
    write(&*store, two.then(vec![claimed(two.command_at(3), "w")])).await;
    assert_eq!(pending(&*store, &any, 9).await, shared[..2]);
}

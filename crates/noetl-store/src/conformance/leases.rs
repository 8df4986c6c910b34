//! Cases about leases.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::{Lease, Store};

/// Duration that outlasts every case.
pub(super) const LONG: Duration = Duration::from_secs(24 * 3600);

pub async fn a_free_lease_is_acquired_and_read_back(store: Arc<dyn Store>) {
    assert_eq!(store.lease("tailer").await.expect("a read"), None);
    let lease = take(&*store, "tailer", "a", LONG).await;
    assert_eq!((&*lease.name, &*lease.holder, lease.epoch), ("tailer", "a", 1));
    assert_eq!(store.lease("tailer").await.expect("a read"), Some(lease));
    assert_eq!(store.lease("Tailer").await.expect("a read"), None);
}

pub async fn a_live_lease_is_not_acquired_by_another_owner(store: Arc<dyn Store>) {
    let lease = take(&*store, "tailer", "a", LONG).await;
    assert_eq!(store.acquire("tailer", "b", LONG).await.expect("an answer"), None);
    assert_eq!(store.lease("tailer").await.expect("a read"), Some(lease));
}

pub async fn a_repeated_acquire_retains_the_epoch(store: Arc<dyn Store>) {
    let first = take(&*store, "tailer", "a", LONG).await;
    let again = take(&*store, "tailer", "a", LONG * 2).await;
    assert!(again.is_same(&first) && again.until > first.until, "{again:?}");
    assert_eq!(store.lease("tailer").await.expect("a read"), Some(again));
}

pub async fn an_expired_lease_is_acquired_with_a_new_epoch(store: Arc<dyn Store>) {
    let over = take(&*store, "tailer", "a", Duration::ZERO).await;
    assert_eq!(store.lease("tailer").await.expect("a read"), None);
    assert_eq!(store.live("").await.expect("a list"), []);
    let next = take(&*store, "tailer", "b", Duration::ZERO).await;
    assert_eq!((over.epoch, next.epoch), (1, 2));
    // The previous holder starts a new epoch too, because the name was free in between.
    assert_eq!(take(&*store, "tailer", "b", LONG).await.epoch, 3);
}

pub async fn a_renewal_extends_only_the_live_lease(store: Arc<dyn Store>) {
    let first = take(&*store, "tailer", "a", Duration::ZERO).await;
    assert!(!store.renew(&first, LONG).await.expect("an answer"), "it was over");
    let lease = take(&*store, "tailer", "a", LONG).await;
    assert!(!store.renew(&first, LONG).await.expect("an answer"), "an old epoch");
    let other = Lease { holder: "b".into(), ..lease.clone() };
    assert!(!store.renew(&other, LONG).await.expect("an answer"), "another holder");
    let unknown = Lease { name: "other".into(), ..lease.clone() };
    assert!(!store.renew(&unknown, LONG).await.expect("an answer"), "an unknown name");
    assert_eq!(store.lease("tailer").await.expect("a read"), Some(lease.clone()));

    assert!(store.renew(&lease, LONG * 2).await.expect("an answer"));
    let longer = store.lease("tailer").await.expect("a read").expect("a live lease");
    assert!(longer.is_same(&lease) && longer.until > lease.until, "{longer:?}");
    assert!(store.renew(&lease, Duration::ZERO).await.expect("an answer"));
    assert_eq!(store.lease("tailer").await.expect("a read"), None);
}

pub async fn a_released_lease_is_free_and_retains_its_epoch(store: Arc<dyn Store>) {
    let first = take(&*store, "tailer", "a", LONG).await;
    assert!(store.release(&first).await.expect("an answer"));
    assert_eq!(store.lease("tailer").await.expect("a read"), None);
    assert!(!store.release(&first).await.expect("an answer"), "it was given back");
    let second = take(&*store, "tailer", "b", LONG).await;
    assert_eq!(second.epoch, 2);
    assert!(!store.release(&first).await.expect("an answer"), "not the present holding");
    assert_eq!(store.lease("tailer").await.expect("a read"), Some(second));
}

pub async fn live_leases_are_listed_by_prefix_in_byte_order(store: Arc<dyn Store>) {
    for name in ["m:10", "m:2", "m", "n:1", "m_1", "ä:1", "m%"] {
        take(&*store, name, "a", LONG).await;
    }
    take(&*store, "m:3", "a", Duration::ZERO).await;
    let cases: [(&str, &[&str]); 4] = [
        ("m:", &["m:10", "m:2"]),
        ("m", &["m", "m%", "m:10", "m:2", "m_1"]),
        ("ä", &["ä:1"]),
        ("%", &[]),
    ];
    for (prefix, expected) in cases {
        let live = store.live(prefix).await.expect("a list");
        let names: Vec<&str> = live.iter().map(|lease| &*lease.name).collect();
        assert_eq!(names, expected, "{prefix}");
    }
}

pub async fn the_lowest_free_machine_id_is_acquired(store: Arc<dyn Store>) {
    take(&*store, "machine:1", "x", LONG).await;
    take(&*store, "machine:01", "x", LONG).await;
    for (holder, expected) in [("a", Some(0)), ("b", Some(2)), ("c", Some(3)), ("d", None)] {
        let taken = store.acquire_any("machine:", 0..4, holder, LONG).await.expect("an answer");
        assert_eq!(taken.as_ref().map(|(number, _)| *number), expected, "{holder}");
        if let Some((number, lease)) = taken {
            assert_eq!((&*lease.name, &*lease.holder), (&*format!("machine:{number}"), holder));
        }
    }
    let none = store.acquire_any("machine:", 7..7, "e", LONG).await;
    assert_eq!(none.expect("an answer"), None);
    let last = store.acquire_any("machine:", 65_534..u16::MAX, "e", LONG).await;
    assert_eq!(last.expect("an answer").map(|(number, _)| number), Some(65_534));
}

pub async fn an_owner_retains_its_machine_id(store: Arc<dyn Store>) {
    take(&*store, "m:0", "x", LONG).await;
    let first = store.acquire_any("m:", 0..9, "a", LONG).await.expect("an answer");
    let (number, first) = first.expect("a number");
    assert_eq!(number, 1);
    take(&*store, "m:0", "x", Duration::ZERO).await;
    let again = store.acquire_any("m:", 0..9, "a", LONG).await.expect("an answer");
    let (number, again) = again.expect("a number");
    assert_eq!(number, 1);
    assert!(again.is_same(&first));
}

pub async fn concurrent_holders_get_distinct_numbers(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for holder in 0..12 {
        let store = store.clone();
        tasks.spawn(async move {
            let holder = format!("server-{holder}");
            let taken = store.acquire_any("m:", 0..12, &holder, LONG).await;
            taken.expect("an answer").expect("a number").0
        });
    }
    let mut numbers = tasks.join_all().await;
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..12));
}

pub async fn concurrent_acquires_have_one_winner(store: Arc<dyn Store>) {
    let mut tasks = JoinSet::new();
    for holder in 0..12 {
        let store = store.clone();
        tasks.spawn(async move {
            let taken = store.acquire("tailer", &format!("server-{holder}"), LONG).await;
            taken.expect("an answer").is_some()
        });
    }
    let won = tasks.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 1);
}

/// Acquires a lease that must be free.
pub(super) async fn take(store: &dyn Store, name: &str, holder: &str, ttl: Duration) -> Lease {
    let taken = store.acquire(name, holder, ttl).await.expect("an answer");
    taken.expect("a free name")
}

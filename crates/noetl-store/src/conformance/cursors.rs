//! Cases about cursors.

use std::sync::Arc;
use std::time::Duration;

use super::leases::{LONG, take};
use crate::{CursorUpdate, Lease, Store};

pub async fn a_cursor_only_moves_forward(store: Arc<dyn Store>) {
    assert_eq!(store.cursor("c").await.expect("a read"), None);
    for (position, expected, at) in [
        (-5, CursorUpdate::Moved, -5),
        (-5, CursorUpdate::Kept, -5),
        (7, CursorUpdate::Moved, 7),
        (6, CursorUpdate::Kept, 7),
        (i64::MIN, CursorUpdate::Kept, 7),
        (i64::MAX, CursorUpdate::Moved, i64::MAX),
        (i64::MAX, CursorUpdate::Kept, i64::MAX),
    ] {
        assert_eq!(advance(&*store, position, None).await, expected, "{position}");
        assert_eq!(store.cursor("c").await.expect("a read"), Some(at), "{position}");
    }
    assert_eq!(store.cursor("C").await.expect("a read"), None);
}

pub async fn a_fenced_cursor_advances_only_under_the_live_lease(store: Arc<dyn Store>) {
    let unknown =
        Lease { name: "t".into(), holder: "a".into(), epoch: 1, until: Default::default() };
    assert_eq!(advance(&*store, 1, Some(&unknown)).await, CursorUpdate::Fenced);

    let old = take(&*store, "t", "a", Duration::ZERO).await;
    assert_eq!(advance(&*store, 1, Some(&old)).await, CursorUpdate::Fenced, "it is over");
    assert_eq!(store.cursor("c").await.expect("a read"), None);

    let live = take(&*store, "t", "a", LONG).await;
    assert_eq!(advance(&*store, 1, Some(&live)).await, CursorUpdate::Moved);
    assert_eq!(advance(&*store, 1, Some(&live)).await, CursorUpdate::Kept);
    assert_eq!(advance(&*store, 2, Some(&old)).await, CursorUpdate::Fenced, "an old epoch");
    let other = Lease { holder: "b".into(), ..live.clone() };
    assert_eq!(advance(&*store, 2, Some(&other)).await, CursorUpdate::Fenced, "another holder");
    // The epoch identifies a lease; the expiration time in the caller's copy does not matter.
    let early = Lease { until: Default::default(), ..live.clone() };
    assert_eq!(advance(&*store, 2, Some(&early)).await, CursorUpdate::Moved);

    assert!(store.release(&live).await.expect("an answer"));
    assert_eq!(advance(&*store, 3, Some(&live)).await, CursorUpdate::Fenced, "it was given back");
    assert_eq!(store.cursor("c").await.expect("a read"), Some(2));
}

async fn advance(store: &dyn Store, position: i64, fence: Option<&Lease>) -> CursorUpdate {
    store.advance("c", position, fence).await.expect("an answer")
}

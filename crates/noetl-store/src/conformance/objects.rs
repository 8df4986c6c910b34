//! Cases about objects and plugin modules.

use std::sync::Arc;

use crate::{Digest, Object, Plugin, Store};

pub async fn an_object_is_read_back(store: Arc<dyn Store>) {
    for bytes in [vec![], vec![0, 255, 10, 0], vec![7; 3_000_000]] {
        let put = store.put_object("a/b", "application/x-test", bytes.clone()).await;
        let summary = put.expect("kept");
        assert_eq!(summary.key, "a/b");
        assert_eq!(summary.digest, Digest::of_bytes(&bytes));
        assert_eq!(summary.media_type, "application/x-test");
        assert_eq!(summary.size, bytes.len() as u64);
        let read = store.object("a/b").await.expect("a read");
        assert!(read == Some(Object { summary, bytes }));
    }
    assert!(store.object("A/b").await.expect("a read").is_none());
}

pub async fn a_deleted_object_does_not_exist(store: Arc<dyn Store>) {
    store.put_object("a", "text/plain", vec![1]).await.expect("kept");
    assert!(store.delete_object("a").await.expect("removed"));
    assert!(!store.delete_object("a").await.expect("no"));
    assert!(store.object("a").await.expect("a read").is_none());
}

pub async fn objects_are_listed_by_beginning_and_in_pages(store: Arc<dyn Store>) {
    for key in ["b/2", "a", "b/1", "b%", "B/1", "b", "b/ä", "b/\u{10ffff}x", "c"] {
        store.put_object(key, "text/plain", key.as_bytes().to_vec()).await.expect("kept");
    }
    for (prefix, after, limit, expected) in [
        ("b/", None, 9, vec!["b/1", "b/2", "b/ä", "b/\u{10ffff}x"]),
        ("b/", None, 2, vec!["b/1", "b/2"]),
        ("b/", Some("b/2"), 9, vec!["b/ä", "b/\u{10ffff}x"]),
        ("b/", Some("a"), 1, vec!["b/1"]),
        ("b/", Some("c"), 9, vec![]),
        ("b%", None, 9, vec!["b%"]),
        ("", None, 3, vec!["B/1", "a", "b"]),
        ("d", None, 9, vec![]),
        ("b", None, 0, vec![]),
    ] {
        let listed = store.objects(prefix, after, limit).await.expect("a list");
        let keys: Vec<&str> = listed.iter().map(|summary| summary.key.as_str()).collect();
        assert_eq!(keys, expected, "{prefix} {after:?} {limit}");
    }
    let one = store.objects("b/ä", None, 1).await.expect("a list");
    assert_eq!((one[0].size, one[0].digest), (4, Digest::of_bytes("b/ä".as_bytes())));
}

pub async fn objects_are_found_by_their_end(store: Arc<dyn Store>) {
    for key in
        ["z/run=1/a.json", "a/run=1/a.json", "a/run=1/a%json", "a/run=1/A.json", "run=1/a.json/b"]
    {
        store.put_object(key, "text/plain", key.as_bytes().to_vec()).await.expect("kept");
    }
    for (suffix, limit, expected) in [
        ("/run=1/a.json", 9, vec!["a/run=1/a.json", "z/run=1/a.json"]),
        ("/run=1/a.json", 1, vec!["a/run=1/a.json"]),
        ("a%json", 9, vec!["a/run=1/a%json"]),
        ("run_1/a.json", 9, vec![]),
        ("a/run=1/a.json and more", 9, vec![]),
    ] {
        let found = store.objects_ending(suffix, limit).await.expect("a list");
        let keys: Vec<&str> = found.iter().map(|summary| summary.key.as_str()).collect();
        assert_eq!(keys, expected, "{suffix} {limit}");
    }
    let all = store.objects_ending("", 9).await.expect("a list");
    assert_eq!(all.len(), 5);
}

pub async fn a_module_is_read_back_by_version_or_highest(store: Arc<dyn Store>) {
    for (version, bytes) in [(2, vec![2]), (-1, vec![1]), (10, vec![]), (2, vec![3; 100_000])] {
        let put = store.put_plugin("system/x", version, "application/wasm", bytes.clone()).await;
        let summary = put.expect("kept");
        assert_eq!((summary.path.as_str(), summary.version), ("system/x", version));
        assert_eq!((summary.digest, summary.size), (Digest::of_bytes(&bytes), bytes.len() as u64));
        let read = store.plugin("system/x", Some(version)).await.expect("a read");
        assert!(read == Some(Plugin { summary, bytes }));
    }
    let highest = store.plugin("system/x", None).await.expect("a read");
    assert_eq!(highest.expect("a module").summary.version, 10);
    assert!(store.plugin("system/x", Some(3)).await.expect("a read").is_none());
    assert!(store.plugin("system", None).await.expect("a read").is_none());
}

pub async fn a_deleted_module_leaves_its_other_versions(store: Arc<dyn Store>) {
    for version in [1, 2] {
        store.put_plugin("x", version, "application/wasm", vec![1]).await.expect("kept");
    }
    assert!(store.delete_plugin("x", 2).await.expect("removed"));
    assert!(!store.delete_plugin("x", 2).await.expect("no"));
    let left = store.plugin("x", None).await.expect("a read");
    assert_eq!(left.expect("a module").summary.version, 1);
}

pub async fn modules_are_listed_by_beginning_and_in_pages(store: Arc<dyn Store>) {
    for (path, version) in [("b/x", 2), ("b/x", 1), ("a", 1), ("b/y", -5), ("c", 1)] {
        store.put_plugin(path, version, "application/wasm", vec![1, 2]).await.expect("kept");
    }
    for (prefix, after, limit, expected) in [
        ("b/", None, 9, vec![("b/x", 1), ("b/x", 2), ("b/y", -5)]),
        ("b/", Some(("b/x", 1)), 1, vec![("b/x", 2)]),
        ("b/", Some(("b/x", 2)), 9, vec![("b/y", -5)]),
        ("", None, 1, vec![("a", 1)]),
        ("d", None, 9, vec![]),
    ] {
        let listed = store.plugins(prefix, after, limit).await.expect("a list");
        let places: Vec<(&str, i32)> =
            listed.iter().map(|summary| (summary.path.as_str(), summary.version)).collect();
        assert_eq!(places, expected, "{prefix} {after:?} {limit}");
        assert!(listed.iter().all(|summary| summary.size == 2));
    }
}

//! Caches parsed subscription documents, so each is parsed once.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use noetl_model::{CatalogId, Value};
use noetl_playbook::subscription::listener;
use noetl_playbook::{Severity, Subscription, check_subscription, subscription_spec};

use super::settings::text;

/// Maximum number of cached documents, usually a few kilobytes each.
const READ_MAX: usize = 4096;

/// Maximum total text size of cached documents, in bytes.
pub(super) const READ_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Cached parts of a document.
#[derive(Debug)]
pub(super) struct CachedListener {
    pub(super) listener: String,
    pub(super) spec: Value,
    /// Compiled document at its catalog path, or the first error.
    pub(super) subscription: Result<Arc<Subscription>, String>,
}

/// LRU cache of parsed documents, bounded by count and by bytes of text.
pub(super) struct ListenerCache {
    read: LruCache<CatalogId, (Option<Arc<CachedListener>>, usize)>,
    bytes: usize,
    bytes_max: usize,
}

impl ListenerCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        let most = NonZeroUsize::new(READ_MAX).expect("more than none");
        Self { read: LruCache::new(most), bytes: 0, bytes_max }
    }

    pub(super) fn get(&mut self, id: CatalogId) -> Option<Option<Arc<CachedListener>>> {
        self.read.get(&id).map(|(read, _)| read.clone())
    }

    /// Caches a document. A document without a listener counts as 0 bytes, whatever its size.
    pub(super) fn put(&mut self, id: CatalogId, read: Option<Arc<CachedListener>>, bytes: usize) {
        let bytes = if read.is_some() { bytes } else { 0 };
        self.bytes += bytes;
        if let Some((_, (_, out))) = self.read.push(id, (read, bytes)) {
            self.bytes -= out;
        }
        while self.bytes > self.bytes_max {
            let Some((_, (_, out))) = self.read.pop_lru() else { break };
            self.bytes -= out;
        }
    }
}

/// Parses the document at a catalog path. Returns `None` if it has no listener.
pub(super) fn read(path: &str, content: &str) -> Option<Arc<CachedListener>> {
    let spec = subscription_spec(content)?;
    let route = spec.get("ingress").and_then(|ingress| text(ingress, "gateway_path"))?;
    let listener = listener(&route)?.to_owned();
    let subscription = compile(path, content);
    Some(Arc::new(CachedListener { listener, spec, subscription }))
}

fn compile(path: &str, content: &str) -> Result<Arc<Subscription>, String> {
    let checked = check_subscription(content);
    // The path of the registration takes precedence over the one in the document.
    let path = path.to_owned();
    let compiled = checked.subscription.map(|found| Arc::new(Subscription { path, ..found }));
    compiled.ok_or_else(|| {
        let mut errors = checked.diagnostics.into_iter();
        let first = errors.find(|found| found.severity == Severity::Error);
        first.map_or_else(String::new, |found| found.message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_by_bytes() {
        let mut documents = ListenerCache::new(100);
        let document = read("sub/a", "spec: {ingress: {gateway_path: /in/orders/}}");
        let ids = [1, 2, 3].map(CatalogId::new);
        documents.put(ids[0], document.clone(), 60);
        documents.put(ids[1], None, 1000);
        assert!(documents.get(ids[0]).is_some(), "one without a listener puts nothing out");
        documents.put(ids[0], document.clone(), 60);
        assert_eq!(documents.bytes, 60, "the same again counts once");
        documents.put(ids[2], document.clone(), 50);
        assert!(documents.get(ids[0]).is_none() && documents.get(ids[2]).is_some());
        documents.put(ids[0], document, 101);
        assert_eq!((documents.bytes, documents.read.len()), (0, 0));
    }

    #[test]
    fn a_document_that_cannot_be_read_has_no_listener() {
        let spec = "spec: {ingress: {gateway_path: /in/orders/}}";
        assert_eq!(
            read("sub/a", spec).map(|read| read.listener.clone()).as_deref(),
            Some("orders")
        );
        for text in ["", "spec: [", "spec: {ingress: {gateway_path: 7}}", "spec: {mode: pull}"] {
            assert!(read("sub/a", text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_document_is_compiled_at_its_catalog_path_or_names_its_first_error() {
        let text = "kind: Subscription\nmetadata: {name: a, path: sub/other}\nspec: {source: webhook, \
                    mode: push, dispatch: {playbook: p}, ingress: {gateway_path: /in/orders, \
                    verify: {type: bearer, secret: s}}}\n";
        let read = |text: &str| read("sub/a", text).expect("a listener").subscription.clone();
        assert_eq!(read(text).map(|found| found.path.clone()), Ok("sub/a".to_owned()));
        let wrong = text.replace("mode: push, ", "");
        assert_eq!(read(&wrong), Err("'mode' is missing".to_owned()));
    }
}

//! Entries as their readers want them.
//!
//! `payload` is a document's workload. The published page looks for `metadata` and `workflow` in it
//! and for `registered_at` in `meta`, so a page finds them there besides; programs get what the
//! document says and nothing else.

use noetl_api::IdForm;
use noetl_api::catalog::Entry;
use noetl_model::{Map, Value};
use noetl_playbook::read_data;
use noetl_store::CatalogEntry;

use crate::shape;

/// The entries, for a page or for a program: a page is who wants ids as text.
pub(super) async fn entries(found: Vec<CatalogEntry>, ids: IdForm) -> Vec<Entry> {
    let entries: Vec<Entry> = found.into_iter().map(shape::entry).collect();
    match ids {
        IdForm::Number => entries,
        // Every document is read for it, which is more than a thread of the runtime should do.
        IdForm::Text => {
            let read = move || entries.into_iter().map(for_page).collect();
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|stopped| match stopped.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a runtime that shuts down drops the task unrun; nobody waits for it then.
                Err(_) => Vec::new(),
            })
        }
    }
}

fn for_page(mut entry: Entry) -> Entry {
    let mut payload = map(entry.payload.take());
    let mut document =
        entry.content.as_deref().and_then(|text| read_data(text).ok()).unwrap_or_default();
    for name in ["metadata", "workflow"] {
        // What the workload calls so itself stays.
        let part = document.get_mut(name).map(Value::take);
        payload.entry(name).or_insert(part.unwrap_or_default());
    }
    entry.payload = Some(Value::Object(payload));
    let mut meta = map(entry.meta.take());
    meta.entry("registered_at").or_insert_with(|| entry.created_at.to_string().into());
    entry.meta = Some(Value::Object(meta));
    entry
}

fn map(value: Option<Value>) -> Map {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

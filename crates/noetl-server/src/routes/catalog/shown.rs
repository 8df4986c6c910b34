//! Catalog entries as pages and programs expect them.
//!
//! `payload` is a document's workload. The published page reads `metadata` and `workflow` from it,
//! and `registered_at` from `meta`, so entries for pages include these keys. Entries for programs
//! contain only the data of the document.

use noetl_api::IdForm;
use noetl_api::catalog::CatalogItem;
use noetl_model::{Map, Value};
use noetl_playbook::read_data;
use noetl_store::CatalogEntry;

use crate::shape;

/// Converts entries for a page, which requests IDs as text, or for a program.
pub(super) async fn entries(found: Vec<CatalogEntry>, ids: IdForm) -> Vec<CatalogItem> {
    let entries: Vec<CatalogItem> = found.into_iter().map(shape::entry).collect();
    match ids {
        IdForm::Number => entries,
        // This parses every document, which is too much work for a runtime thread.
        IdForm::Text => {
            let read = move || entries.into_iter().map(for_page).collect();
            let read = tokio::task::spawn_blocking(read).await;
            read.unwrap_or_else(|stopped| match stopped.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The task is dropped without a run only on shutdown, when no client waits for the
                // response.
                Err(_) => Vec::new(),
            })
        }
    }
}

fn for_page(mut entry: CatalogItem) -> CatalogItem {
    let mut payload = map(entry.payload.take());
    let mut document =
        entry.content.as_deref().and_then(|text| read_data(text).ok()).unwrap_or_default();
    for name in ["metadata", "workflow"] {
        // Keys of the workload take precedence.
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

//! Conversion of catalog entries to their API form.

use noetl_api::Id;
use noetl_api::catalog::{CatalogItem, RegisterReply};
use noetl_store::{CatalogEntry, StoredCredential};
use serde_json::json;

use super::diagnostic;

pub(crate) fn registered(
    entry: &CatalogEntry,
    findings: &[noetl_playbook::Diagnostic],
) -> RegisterReply {
    RegisterReply {
        status: "success".to_owned(),
        message: format!("Resource '{}' version '{}' registered.", entry.path, entry.version),
        path: entry.path.clone(),
        version: entry.version,
        catalog_id: Id::text(entry.id.get()),
        kind: entry.kind.clone(),
        warnings: findings.iter().map(diagnostic).collect(),
    }
}

pub(crate) fn entry(entry: CatalogEntry) -> CatalogItem {
    CatalogItem {
        catalog_id: Id::text(entry.id.get()),
        path: entry.path,
        kind: entry.kind,
        version: entry.version,
        content: Some(entry.content),
        layout: entry.layout,
        payload: entry.payload,
        meta: entry.meta,
        created_at: entry.created_at,
        deleted_at: entry.deleted_at,
    }
}

/// Returns a credential as a catalog entry, with its name as the path. Secrets are not included.
pub(crate) fn credential_entry(credential: StoredCredential) -> CatalogItem {
    let StoredCredential { kept, created_at, .. } = credential;
    CatalogItem {
        catalog_id: Id::text(kept.id.get()),
        path: kept.name,
        kind: "credential".to_owned(),
        version: 1,
        content: None,
        layout: None,
        payload: None,
        meta: Some(json!({
            "type": kept.kind,
            "description": kept.description,
            "tags": kept.tags,
        })),
        created_at,
        deleted_at: None,
    }
}

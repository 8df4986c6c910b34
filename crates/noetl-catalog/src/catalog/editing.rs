//! Lookup and replacement of documents for editors.

use noetl_model::{CatalogId, Tenant};
use noetl_playbook::{Diagnostic, describe};
use noetl_store::{CatalogEntry, StoreError};

use super::{Catalog, RegisterError};

#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// No document has this ID or path.
    #[error("document not found")]
    NotFound,
    /// The new text has the path of another document.
    #[error("the document's path is '{own}', and '{path}' is to be replaced")]
    AnotherPath {
        /// Path in the new text.
        own: String,
        /// Path of the document to replace.
        path: String,
    },
    /// Registering the new version failed.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

impl Catalog {
    /// Returns the document with this ID, or the newest version at this path.
    pub async fn named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        if let Ok(id) = name.parse::<CatalogId>()
            && let Some(entry) = self.entry(tenant, id).await?
        {
            return Ok(Some(entry));
        }
        self.entry_at(tenant, name, None).await
    }

    /// Registers a text as the next version of a document. The text must have the same path.
    pub async fn replace(
        &self,
        tenant: &Tenant,
        name: &str,
        content: String,
    ) -> Result<(CatalogEntry, Vec<Diagnostic>), ReplaceError> {
        let found = self.named(tenant, name).await.map_err(RegisterError::Store)?;
        let path = found.ok_or(ReplaceError::NotFound)?.path;
        // `register` rejects a text that cannot be parsed, with the position of the error.
        if let Ok(found) = describe(&content) {
            let own = found.path.or(found.name).unwrap_or_default();
            if own != path {
                return Err(ReplaceError::AnotherPath { own, path });
            }
        }
        Ok(self.register(tenant, content, "playbook", false).await?)
    }
}

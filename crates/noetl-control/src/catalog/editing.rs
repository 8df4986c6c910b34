//! Documents by the names editors know them by, and new texts for them.

use noetl_model::{CatalogId, Tenant};
use noetl_playbook::{Diagnostic, describe};
use noetl_store::{CatalogEntry, StoreError};

use super::{Catalog, RegisterError};

/// Why a text did not replace another.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// There is no such document.
    #[error("there is no such document")]
    NotFound,
    /// The text is that of another document.
    #[error("the document's path is '{own}', and '{path}' is to be replaced")]
    AnotherPath {
        /// The path the text says it has.
        own: String,
        /// The path of what is to be replaced.
        path: String,
    },
    /// It was not registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

impl Catalog {
    /// The document of this id, or the newest of this path.
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

    /// Registers a text as the next version of a document, which has to have its path.
    pub async fn replace(
        &self,
        tenant: &Tenant,
        name: &str,
        content: String,
    ) -> Result<(CatalogEntry, Vec<Diagnostic>), ReplaceError> {
        let found = self.named(tenant, name).await.map_err(RegisterError::Store)?;
        let path = found.ok_or(ReplaceError::NotFound)?.path;
        // A text that cannot be described is refused below, with its place.
        if let Ok(found) = describe(&content) {
            let own = found.path.or(found.name).unwrap_or_default();
            if own != path {
                return Err(ReplaceError::AnotherPath { own, path });
            }
        }
        Ok(self.register(tenant, content, "playbook", false).await?)
    }
}

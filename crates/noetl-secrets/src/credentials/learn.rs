//! Registers stored secrets for redaction at startup.

use noetl_store::{SealedLocation, StoreError};
use noetl_work::keychain_settings::label;
use tracing::debug;

use super::Credentials;
use crate::binding;
use crate::sealing::SealedAt;

/// Rows read at a time.
const PAGE: usize = 500;

impl Credentials {
    /// Registers all stored secrets for redaction, so each is redacted from the first report on,
    /// whichever process handed it out. Skips values that cannot be decrypted.
    pub(crate) async fn learn(&self) -> Result<(), StoreError> {
        let Some(key) = &self.key else { return Ok(()) };
        binding::follow(&*self.store, key).await?;
        let mut after = None;
        loop {
            let page = self.store.sealed_rows(after.as_ref(), PAGE).await?;
            for row in &page {
                let (name, kind) = match &row.location {
                    SealedLocation::Credential(_) => (row.name.clone(), Some(row.kind.as_str())),
                    SealedLocation::Keychain(..) => (label(&row.name), None),
                    SealedLocation::Setting(_) => continue,
                };
                match key.open_at(&SealedAt::from_row(row), &row.sealed) {
                    Ok(data) => self.redaction.note(&row.tenant, &name, kind, &data),
                    Err(error) => debug!(name, %error, "failed to decrypt stored secret"),
                }
            }
            if page.len() < PAGE {
                return Ok(());
            }
            after = page.into_iter().next_back().map(|row| row.location);
        }
    }
}

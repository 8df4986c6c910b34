//! What is encrypted, whosever it is.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};
use noetl_store::{Sealed, SealedPlace, SealedRow, SealedRows, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;

#[async_trait]
impl SealedRows for PostgresStore {
    async fn sealed_rows(
        &self,
        after: Option<&SealedPlace>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let (credential, entry) = match after {
            None => (None, None),
            Some(SealedPlace::Credential(id)) => (Some(id.get()), None),
            Some(SealedPlace::Keychain(tenant, key)) => (None, Some((tenant.as_str(), key))),
        };
        let mut found = Vec::new();
        if entry.is_none() {
            let sql = include_str!("../queries/credential_sealed.sql");
            let make = || sqlx::query(sql).bind(credential).bind(rows(limit));
            found = self.list("list encrypted credentials", make, of_credential).await?;
        }
        if found.len() < limit {
            let (tenant, key) = entry.unzip();
            let sql = include_str!("../queries/keychain_sealed.sql");
            let rest = rows(limit - found.len());
            let make = || sqlx::query(sql).bind(tenant).bind(key).bind(rest);
            found.extend(self.list("list the encrypted keychain", make, of_keychain).await?);
        }
        Ok(found)
    }

    async fn reseal(
        &self,
        place: &SealedPlace,
        was: &Sealed,
        now: &Sealed,
    ) -> Result<bool, StoreError> {
        let make = || match place {
            SealedPlace::Credential(id) => {
                let sql = "update noetl.credential set data_encrypted = $3 \
                           where id = $1 and data_encrypted = $2";
                sqlx::query(sql).bind(id.get()).bind(was.as_str()).bind(now.as_str())
            }
            SealedPlace::Keychain(tenant, key) => {
                let sql = "update noetl.keychain set data_encrypted = $4 \
                           where tenant_id = $1 and cache_key = $2 and data_encrypted = $3";
                let query = sqlx::query(sql).bind(tenant.as_str()).bind(key);
                query.bind(was.as_str()).bind(now.as_str())
            }
        };
        Ok(self.touch("replace what is encrypted", make).await? > 0)
    }
}

fn of_credential(row: &PgRow) -> Result<SealedRow, sqlx::Error> {
    Ok(SealedRow {
        place: SealedPlace::Credential(CredentialId::new(row.try_get(0)?)),
        sealed: Sealed::new(row.try_get::<String, _>(1)?),
    })
}

fn of_keychain(row: &PgRow) -> Result<SealedRow, sqlx::Error> {
    let tenant = Tenant::new(row.try_get::<String, _>(0)?);
    Ok(SealedRow {
        place: SealedPlace::Keychain(tenant, row.try_get(1)?),
        sealed: Sealed::new(row.try_get::<String, _>(2)?),
    })
}

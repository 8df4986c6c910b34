//! Implements [`SealedRecordStore`]: encrypted values of all tenants.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};
use noetl_store::{SealedLocation, SealedRecordStore, SealedRow, SealedText, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;

#[async_trait]
impl SealedRecordStore for PostgresStore {
    async fn sealed_rows(
        &self,
        after: Option<&SealedLocation>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let (credential, entry, setting) = match after {
            None => (None, None, None),
            Some(SealedLocation::Credential(id)) => (Some(id.get()), None, None),
            Some(SealedLocation::Keychain(tenant, key)) => {
                (None, Some((tenant.as_str(), key)), None)
            }
            Some(SealedLocation::Setting(name)) => (None, None, Some(name)),
        };
        let mut found = Vec::new();
        if entry.is_none() && setting.is_none() {
            let sql = include_str!("../queries/credential_sealed.sql");
            let make = || sqlx::query(sql).bind(credential).bind(rows(limit));
            found = self.list("list encrypted credentials", make, of_credential).await?;
        }
        if found.len() < limit && setting.is_none() {
            let (tenant, key) = entry.unzip();
            let sql = include_str!("../queries/keychain_sealed.sql");
            let rest = rows(limit - found.len());
            let make = || sqlx::query(sql).bind(tenant).bind(key).bind(rest);
            found.extend(self.list("list the encrypted keychain", make, of_keychain).await?);
        }
        if found.len() < limit {
            let sql = include_str!("../queries/sealed_setting_list.sql");
            let rest = rows(limit - found.len());
            let make = || sqlx::query(sql).bind(setting).bind(rest);
            found.extend(self.list("list settings", make, of_setting).await?);
        }
        Ok(found)
    }

    async fn reseal(
        &self,
        location: &SealedLocation,
        was: &SealedText,
        now: &SealedText,
    ) -> Result<bool, StoreError> {
        let make = || match location {
            SealedLocation::Credential(id) => {
                let sql = "update noetl.credential set data_encrypted = $3 \
                           where id = $1 and data_encrypted = $2";
                sqlx::query(sql).bind(id.get()).bind(was.as_str()).bind(now.as_str())
            }
            SealedLocation::Keychain(tenant, key) => {
                let sql = "update noetl.keychain set data_encrypted = $4 \
                           where tenant_id = $1 and cache_key = $2 and data_encrypted = $3";
                let query = sqlx::query(sql).bind(tenant.as_str()).bind(key);
                query.bind(was.as_str()).bind(now.as_str())
            }
            SealedLocation::Setting(name) => {
                let sql = "update noetl.sealed_setting set data_encrypted = $3 \
                           where name = $1 and data_encrypted = $2";
                sqlx::query(sql).bind(name).bind(was.as_str()).bind(now.as_str())
            }
        };
        Ok(self.touch("replace what is encrypted", make).await? > 0)
    }

    async fn sealed_setting(&self, name: &str) -> Result<Option<SealedText>, StoreError> {
        let sql = "select data_encrypted from noetl.sealed_setting where name = $1";
        self.one("read a setting", || sqlx::query(sql).bind(name), of_text).await
    }

    async fn put_sealed_setting(
        &self,
        name: &str,
        new: &SealedText,
    ) -> Result<SealedText, StoreError> {
        let sql = include_str!("../queries/sealed_setting_put.sql");
        let make = || sqlx::query(sql).bind(name).bind(new.as_str());
        let kept = self.change("keep a setting", make, of_text).await?;
        Ok(kept.into_iter().next().unwrap_or_else(|| new.clone()))
    }
}

fn of_text(row: &PgRow) -> Result<SealedText, sqlx::Error> {
    Ok(SealedText::new(row.try_get::<String, _>(0)?))
}

fn of_setting(row: &PgRow) -> Result<SealedRow, sqlx::Error> {
    let name: String = row.try_get(0)?;
    Ok(SealedRow {
        location: SealedLocation::Setting(name.clone()),
        tenant: Tenant::default(),
        name,
        kind: String::new(),
        sealed: SealedText::new(row.try_get::<String, _>(1)?),
    })
}

fn of_credential(row: &PgRow) -> Result<SealedRow, sqlx::Error> {
    Ok(SealedRow {
        location: SealedLocation::Credential(CredentialId::new(row.try_get(0)?)),
        tenant: Tenant::new(row.try_get::<String, _>(1)?),
        name: row.try_get(2)?,
        kind: row.try_get(3)?,
        sealed: SealedText::new(row.try_get::<String, _>(4)?),
    })
}

fn of_keychain(row: &PgRow) -> Result<SealedRow, sqlx::Error> {
    let tenant = Tenant::new(row.try_get::<String, _>(0)?);
    Ok(SealedRow {
        location: SealedLocation::Keychain(tenant.clone(), row.try_get(1)?),
        tenant,
        name: row.try_get(2)?,
        kind: row.try_get(3)?,
        sealed: SealedText::new(row.try_get::<String, _>(4)?),
    })
}

//! Implements [`SealedRecordStore`]: encrypted values of all tenants.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};
use noetl_store::{SealedLocation, SealedRecordStore, SealedRow, SealedText, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row};

use crate::SqliteStore;
use crate::encoded_append::rows;

#[async_trait]
impl SealedRecordStore for SqliteStore {
    async fn sealed_rows(
        &self,
        after: Option<&SealedLocation>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let after = after.cloned();
        self.read("list what is encrypted", move |connection| {
            let mut found = match &after {
                None => credentials(connection, None, limit)?,
                Some(SealedLocation::Credential(id)) => credentials(connection, Some(*id), limit)?,
                Some(SealedLocation::Keychain(..) | SealedLocation::Setting(_)) => Vec::new(),
            };
            let (entry, setting) = match &after {
                Some(SealedLocation::Keychain(tenant, key)) => (Some((tenant, key.as_str())), None),
                Some(SealedLocation::Setting(name)) => (None, Some(name.as_str())),
                Some(SealedLocation::Credential(_)) | None => (None, None),
            };
            if found.len() < limit && setting.is_none() {
                found.extend(keychain(connection, entry, limit - found.len())?);
            }
            if found.len() < limit {
                found.extend(settings(connection, setting, limit - found.len())?);
            }
            Ok(found)
        })
        .await
    }

    async fn reseal(
        &self,
        location: &SealedLocation,
        was: &SealedText,
        now: &SealedText,
    ) -> Result<bool, StoreError> {
        let (location, was, now) = (location.clone(), was.clone(), now.clone());
        self.write("replace what is encrypted", move |connection, _| {
            let (was, now) = (was.as_str(), now.as_str());
            let changed = match &location {
                SealedLocation::Credential(id) => {
                    let sql = "update credential set data_encrypted = ?3 \
                               where id = ?1 and data_encrypted = ?2";
                    connection.prepare_cached(sql)?.execute((id.get(), was, now))?
                }
                SealedLocation::Keychain(tenant, key) => {
                    let sql = "update keychain set data_encrypted = ?4 \
                               where tenant_id = ?1 and cache_key = ?2 and data_encrypted = ?3";
                    connection.prepare_cached(sql)?.execute((tenant.as_str(), key, was, now))?
                }
                SealedLocation::Setting(name) => {
                    let sql = "update sealed_setting set data_encrypted = ?3 \
                               where name = ?1 and data_encrypted = ?2";
                    connection.prepare_cached(sql)?.execute((name, was, now))?
                }
            };
            Ok(changed > 0)
        })
        .await
    }

    async fn sealed_setting(&self, name: &str) -> Result<Option<SealedText>, StoreError> {
        let name = name.to_owned();
        self.read("read a setting", move |connection| {
            let sql = "select data_encrypted from sealed_setting where name = ?1";
            let found = connection.prepare_cached(sql)?.query_row((name,), |row| row.get(0));
            Ok(found.optional()?.map(|text: String| SealedText::new(text)))
        })
        .await
    }

    async fn put_sealed_setting(
        &self,
        name: &str,
        new: &SealedText,
    ) -> Result<SealedText, StoreError> {
        let (name, new) = (name.to_owned(), new.clone());
        self.write("keep a setting", move |connection, now| {
            let sql = include_str!("../queries/sealed_setting_put.sql");
            let values = (name, new.as_str(), now.as_micros());
            connection
                .prepare_cached(sql)?
                .query_row(values, |row| row.get(0))
                .map(|text: String| SealedText::new(text))
        })
        .await
    }
}

fn settings(
    connection: &Connection,
    after: Option<&str>,
    limit: usize,
) -> rusqlite::Result<Vec<SealedRow>> {
    let sql = include_str!("../queries/sealed_setting_list.sql");
    let row = |row: &Row<'_>| {
        let name: String = row.get(0)?;
        Ok(SealedRow {
            location: SealedLocation::Setting(name.clone()),
            tenant: Tenant::default(),
            name,
            kind: String::new(),
            sealed: SealedText::new(row.get::<_, String>(1)?),
        })
    };
    let mut list = connection.prepare_cached(sql)?;
    list.query_map((after, rows(limit)), row)?.collect()
}

fn credentials(
    connection: &Connection,
    after: Option<CredentialId>,
    limit: usize,
) -> rusqlite::Result<Vec<SealedRow>> {
    let sql = include_str!("../queries/credential_sealed.sql");
    let row = |row: &Row<'_>| {
        Ok(SealedRow {
            location: SealedLocation::Credential(CredentialId::new(row.get(0)?)),
            tenant: Tenant::new(row.get::<_, String>(1)?),
            name: row.get(2)?,
            kind: row.get(3)?,
            sealed: SealedText::new(row.get::<_, String>(4)?),
        })
    };
    let mut list = connection.prepare_cached(sql)?;
    list.query_map((after.map(CredentialId::get), rows(limit)), row)?.collect()
}

fn keychain(
    connection: &Connection,
    after: Option<(&Tenant, &str)>,
    limit: usize,
) -> rusqlite::Result<Vec<SealedRow>> {
    let sql = include_str!("../queries/keychain_sealed.sql");
    let (tenant, key) = after.map(|(tenant, key)| (tenant.as_str(), key)).unzip();
    let row = |row: &Row<'_>| {
        let tenant = Tenant::new(row.get::<_, String>(0)?);
        Ok(SealedRow {
            location: SealedLocation::Keychain(tenant.clone(), row.get(1)?),
            tenant,
            name: row.get(2)?,
            kind: row.get(3)?,
            sealed: SealedText::new(row.get::<_, String>(4)?),
        })
    };
    let mut list = connection.prepare_cached(sql)?;
    list.query_map((tenant, key, rows(limit)), row)?.collect()
}

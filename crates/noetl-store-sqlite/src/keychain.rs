//! Implements [`KeychainStore`] on the table `keychain`.

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Tenant, Timestamp};
use noetl_store::{
    CacheKind, KeychainEntry, KeychainFilter, KeychainScope, KeychainStore, NewKeychainEntry,
    SealedText, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, instant, json, json_text, micros, parsed};
use crate::encoded_append::rows;

#[async_trait]
impl KeychainStore for SqliteStore {
    async fn put_keychain_entry(
        &self,
        tenant: &Tenant,
        new: NewKeychainEntry,
    ) -> Result<KeychainEntry, StoreError> {
        let tenant = tenant.clone();
        self.write("keep a keychain entry", move |connection, created_at| {
            put(connection, &tenant, &new, created_at)?;
            Ok(KeychainEntry { kept: new, created_at, accessed_at: None, access_count: 0 })
        })
        .await
    }

    async fn use_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        let tenant = tenant.clone();
        let cache_key = cache_key.to_owned();
        self.write("use a keychain entry", move |connection, now| {
            let sql = include_str!("../queries/keychain_use.sql");
            let mut take = connection.prepare_cached(sql)?;
            take.query_row((tenant.as_str(), cache_key, now.as_micros()), entry).optional()
        })
        .await
    }

    async fn keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        let tenant = tenant.clone();
        let cache_key = cache_key.to_owned();
        self.read("read a keychain entry", move |connection| {
            let sql = include_str!("../queries/keychain_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((tenant.as_str(), cache_key), entry).optional()
        })
        .await
    }

    async fn keychain_entries(
        &self,
        tenant: &Tenant,
        filter: &KeychainFilter,
    ) -> Result<Vec<KeychainEntry>, StoreError> {
        let tenant = tenant.clone();
        let catalog = filter.catalog.map(CatalogId::get);
        let execution = filter.execution.map(ExecutionId::get);
        self.read("list the keychain", move |connection| {
            let sql = include_str!("../queries/keychain_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((tenant.as_str(), catalog, execution), entry)?.collect()
        })
        .await
    }

    async fn delete_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        let cache_key = cache_key.to_owned();
        self.write("remove a keychain entry", move |connection, _| {
            let sql = "delete from keychain where tenant_id = ?1 and cache_key = ?2";
            let removed = connection.prepare_cached(sql)?.execute((tenant.as_str(), cache_key))?;
            Ok(removed > 0)
        })
        .await
    }

    async fn purge_keychain(&self, limit: usize) -> Result<usize, StoreError> {
        self.write("purge the keychain", move |connection, now| {
            let sql = include_str!("../queries/keychain_purge.sql");
            connection.prepare_cached(sql)?.execute((now.as_micros(), rows(limit)))
        })
        .await
    }
}

fn put(
    connection: &Connection,
    tenant: &Tenant,
    new: &NewKeychainEntry,
    created_at: Timestamp,
) -> rusqlite::Result<usize> {
    let sql = include_str!("../queries/keychain_put.sql");
    connection.prepare_cached(sql)?.execute(params![
        tenant.as_str(),
        new.cache_key,
        new.name,
        new.catalog.get(),
        new.credential_kind,
        new.cache.as_str(),
        new.scope.as_str(),
        new.execution.map(ExecutionId::get),
        new.parent.map(ExecutionId::get),
        new.sealed.as_str(),
        json_text(&new.schema),
        micros(new.expires_at),
        new.auto_renew,
        json_text(&new.renew_config),
        created_at.as_micros(),
    ])
}

fn entry(row: &Row<'_>) -> rusqlite::Result<KeychainEntry> {
    let kept = NewKeychainEntry {
        cache_key: row.get(0)?,
        name: row.get(1)?,
        catalog: CatalogId::new(row.get(2)?),
        credential_kind: row.get(3)?,
        cache: parsed(row, 4, CacheKind::from_text)?,
        scope: parsed(row, 5, KeychainScope::from_text)?,
        execution: row.get::<_, Option<i64>>(6)?.map(ExecutionId::new),
        parent: row.get::<_, Option<i64>>(7)?.map(ExecutionId::new),
        sealed: SealedText::new(row.get::<_, String>(8)?),
        schema: json(row, 9)?,
        expires_at: instant(row, 10)?,
        auto_renew: row.get(11)?,
        renew_config: json(row, 12)?,
    };
    Ok(KeychainEntry {
        kept,
        created_at: Timestamp::from_micros(row.get(13)?),
        accessed_at: instant(row, 14)?,
        access_count: count(row, 15)?,
    })
}

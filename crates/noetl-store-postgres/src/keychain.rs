//! Implements [`KeychainStore`] on the table `keychain`.

use async_trait::async_trait;
use noetl_model::{CatalogId, ExecutionId, Tenant};
use noetl_store::{
    CacheKind, KeychainEntry, KeychainFilter, KeychainScope, KeychainStore, NewKeychainEntry,
    SealedText, StoreError,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, instant, json, json_text, number, parsed};
use crate::error::no_row;

#[async_trait]
impl KeychainStore for PostgresStore {
    async fn put_keychain_entry(
        &self,
        tenant: &Tenant,
        new: NewKeychainEntry,
    ) -> Result<KeychainEntry, StoreError> {
        let action = "keep a keychain entry";
        let sql = include_str!("../queries/keychain_put.sql");
        let make = || {
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(&new.cache_key)
                .bind(&new.name)
                .bind(new.catalog.get())
                .bind(&new.credential_kind)
                .bind(new.cache.as_str())
                .bind(new.scope.as_str())
                .bind(new.execution.map(ExecutionId::get))
                .bind(new.parent.map(ExecutionId::get))
                .bind(new.sealed.as_str())
                .bind(json_text(new.schema.as_ref()))
                .bind(new.expires_at.map(PgTimestamptz::clamped))
                .bind(new.auto_renew)
                .bind(json_text(new.renew_config.as_ref()))
        };
        let kept = self.change(action, make, entry).await?;
        kept.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn use_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        let sql = include_str!("../queries/keychain_use.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(cache_key);
        Ok(self.change("use a keychain entry", make, entry).await?.into_iter().next())
    }

    async fn keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        let sql = include_str!("../queries/keychain_get.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(cache_key);
        self.one("read a keychain entry", make, entry).await
    }

    async fn keychain_entries(
        &self,
        tenant: &Tenant,
        filter: &KeychainFilter,
    ) -> Result<Vec<KeychainEntry>, StoreError> {
        let sql = include_str!("../queries/keychain_list.sql");
        let make = || {
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(filter.catalog.map(CatalogId::get))
                .bind(filter.execution.map(ExecutionId::get))
        };
        self.list("list the keychain", make, entry).await
    }

    async fn delete_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<bool, StoreError> {
        let sql = "delete from noetl.keychain where tenant_id = $1 and cache_key = $2";
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(cache_key);
        Ok(self.touch("remove a keychain entry", make).await? > 0)
    }

    async fn purge_keychain(&self, limit: usize) -> Result<usize, StoreError> {
        let sql = include_str!("../queries/keychain_purge.sql");
        self.touch("purge the keychain", || sqlx::query(sql).bind(rows(limit))).await
    }
}

fn entry(row: &PgRow) -> Result<KeychainEntry, sqlx::Error> {
    let kept = NewKeychainEntry {
        cache_key: row.try_get(0)?,
        name: row.try_get(1)?,
        catalog: CatalogId::new(row.try_get(2)?),
        credential_kind: row.try_get(3)?,
        cache: parsed(row, 4, CacheKind::from_text)?,
        scope: parsed(row, 5, KeychainScope::from_text)?,
        execution: row.try_get::<Option<i64>, _>(6)?.map(ExecutionId::new),
        parent: row.try_get::<Option<i64>, _>(7)?.map(ExecutionId::new),
        sealed: SealedText::new(row.try_get::<String, _>(8)?),
        schema: json(row, 9)?,
        expires_at: instant(row, 10)?,
        auto_renew: row.try_get(11)?,
        renew_config: json(row, 12)?,
    };
    Ok(KeychainEntry {
        kept,
        created_at: row.try_get::<PgTimestamptz, _>(13)?.0,
        accessed_at: instant(row, 14)?,
        access_count: number(row, 15)?,
    })
}

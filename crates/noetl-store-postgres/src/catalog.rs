//! Implements [`CatalogStore`] on the table `catalog`.

use async_trait::async_trait;
use noetl_model::{CatalogId, Tenant, Timestamp, Value};
use noetl_store::{
    CatalogEntry, CatalogHead, CatalogSize, CatalogStore, CatalogVersion, NewEntry, StoreError,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::replace_nul;
use crate::column::{self, PgTimestamp, PgTimestamptz, instant, json_text, small};

#[async_trait]
impl CatalogStore for PostgresStore {
    async fn register(&self, tenant: &Tenant, entry: NewEntry) -> Result<CatalogEntry, StoreError> {
        let sql = "select noetl.catalog_register_1($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let json = |value: Option<&Value>| {
            let mut text = json_text(value);
            if self.how().is_binary {
                text.iter_mut().for_each(replace_nul);
            }
            text
        };
        let make = || {
            sqlx::query(sql)
                .bind(tenant.as_str())
                .bind(entry.id.get())
                .bind(&entry.path)
                .bind(&entry.kind)
                .bind(&entry.content)
                .bind(json(entry.layout.as_ref()))
                .bind(json(entry.payload.as_ref()))
                .bind(json(entry.meta.as_ref()))
                .bind(PgTimestamp(entry.at))
        };
        let version = self.change("register a catalog entry", make, |row| small(row, 0)).await?;
        Ok(CatalogEntry {
            version: version.into_iter().next().unwrap_or_default(),
            id: entry.id,
            path: entry.path,
            kind: entry.kind,
            content: entry.content,
            layout: entry.layout,
            payload: entry.payload,
            meta: entry.meta,
            created_at: entry.at,
            deleted_at: None,
        })
    }

    async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        let sql = include_str!("../queries/catalog_get.sql");
        self.one(
            "read a catalog entry",
            || sqlx::query(sql).bind(id.get()).bind(tenant.as_str()),
            entry,
        )
        .await
    }

    async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        // A version beyond `i32::MAX` does not exist.
        let version = version.map(|version| i32::try_from(version).unwrap_or(-1));
        let sql = include_str!("../queries/catalog_get_at.sql");
        self.one(
            "read a catalog entry",
            || sqlx::query(sql).bind(tenant.as_str()).bind(path).bind(version),
            entry,
        )
        .await
    }

    async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let sql = include_str!("../queries/catalog_list.sql");
        self.list("list the catalog", || sqlx::query(sql).bind(tenant.as_str()).bind(kind), entry)
            .await
    }

    async fn newest_of(&self, tenant: &Tenant, kind: &str) -> Result<Vec<CatalogHead>, StoreError> {
        let sql = include_str!("../queries/catalog_newest.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(kind);
        self.list("list the newest of the catalog", make, head).await
    }

    async fn versions(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let sql = include_str!("../queries/catalog_versions.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(path);
        self.list("list the versions of a path", make, version).await
    }

    async fn catalog_size(&self, tenant: &Tenant) -> Result<CatalogSize, StoreError> {
        let sql = "select count(*), coalesce(sum(octet_length(content)), 0)::bigint \
                   from noetl.catalog where tenant_id = $1";
        let size = |row: &PgRow| {
            let (documents, bytes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok(CatalogSize { documents: documents.unsigned_abs(), bytes: bytes.unsigned_abs() })
        };
        let make = || sqlx::query(sql).bind(tenant.as_str());
        let measured = self.one("measure the catalog", make, size).await?;
        Ok(measured.unwrap_or(CatalogSize { documents: 0, bytes: 0 }))
    }

    async fn set_deleted(
        &self,
        tenant: &Tenant,
        path: &str,
        number: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let number = number.map(|number| i32::try_from(number).unwrap_or(-1));
        let sql = include_str!("../queries/catalog_set_deleted.sql");
        let make = || {
            let query = sqlx::query(sql).bind(tenant.as_str()).bind(path).bind(number);
            query.bind(at.map(PgTimestamptz::clamped))
        };
        self.change("delete or restore a catalog entry", make, version).await
    }
}

fn head(row: &PgRow) -> Result<CatalogHead, sqlx::Error> {
    Ok(CatalogHead {
        id: CatalogId::new(row.try_get(0)?),
        path: row.try_get(1)?,
        version: small(row, 2)?,
    })
}

fn version(row: &PgRow) -> Result<CatalogVersion, sqlx::Error> {
    Ok(CatalogVersion {
        id: CatalogId::new(row.try_get(0)?),
        path: row.try_get(1)?,
        version: small(row, 2)?,
        kind: row.try_get(3)?,
        created_at: row.try_get::<PgTimestamp, _>(4)?.0,
        deleted_at: instant(row, 5)?,
    })
}

fn entry(row: &PgRow) -> Result<CatalogEntry, sqlx::Error> {
    Ok(CatalogEntry {
        id: CatalogId::new(row.try_get(0)?),
        path: row.try_get(1)?,
        version: small(row, 2)?,
        kind: row.try_get(3)?,
        // A document of an adopted database may have no text.
        content: row.try_get::<Option<String>, _>(4)?.unwrap_or_default(),
        layout: column::json(row, 5)?,
        payload: column::json(row, 6)?,
        meta: column::json(row, 7)?,
        created_at: row.try_get::<PgTimestamp, _>(8)?.0,
        deleted_at: instant(row, 9)?,
    })
}

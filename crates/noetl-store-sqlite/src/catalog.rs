//! Implements [`CatalogStore`] on the table `catalog`.

use async_trait::async_trait;
use noetl_model::{CatalogId, Tenant, Timestamp};
use noetl_store::{
    CatalogEntry, CatalogHead, CatalogSize, CatalogStore, CatalogVersion, NewEntry, StoreError,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, instant, json, json_text, micros};

#[async_trait]
impl CatalogStore for SqliteStore {
    async fn register(&self, tenant: &Tenant, entry: NewEntry) -> Result<CatalogEntry, StoreError> {
        let tenant = tenant.clone();
        self.write("register a catalog entry", move |connection, _| {
            let version = register(connection, &tenant, &entry)?;
            Ok(CatalogEntry {
                id: entry.id,
                path: entry.path,
                version,
                kind: entry.kind,
                content: entry.content,
                layout: entry.layout,
                payload: entry.payload,
                meta: entry.meta,
                created_at: entry.at,
                deleted_at: None,
            })
        })
        .await
    }

    async fn entry(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        let tenant = tenant.clone();
        self.read("read a catalog entry", move |connection| {
            let sql = include_str!("../queries/catalog_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((id.get(), tenant.as_str()), entry).optional()
        })
        .await
    }

    async fn entry_at(
        &self,
        tenant: &Tenant,
        path: &str,
        version: Option<u32>,
    ) -> Result<Option<CatalogEntry>, StoreError> {
        let tenant = tenant.clone();
        let path = path.to_owned();
        self.read("read a catalog entry", move |connection| {
            let sql = include_str!("../queries/catalog_get_at.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((tenant.as_str(), path, version), entry).optional()
        })
        .await
    }

    async fn entries(
        &self,
        tenant: &Tenant,
        kind: Option<&str>,
    ) -> Result<Vec<CatalogEntry>, StoreError> {
        let tenant = tenant.clone();
        let kind = kind.map(str::to_owned);
        self.read("list the catalog", move |connection| {
            let sql = include_str!("../queries/catalog_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((tenant.as_str(), kind), entry)?.collect()
        })
        .await
    }

    async fn newest_of(&self, tenant: &Tenant, kind: &str) -> Result<Vec<CatalogHead>, StoreError> {
        let tenant = tenant.clone();
        let kind = kind.to_owned();
        self.read("list the newest of the catalog", move |connection| {
            let sql = include_str!("../queries/catalog_newest.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((tenant.as_str(), kind), head)?.collect()
        })
        .await
    }

    async fn versions(
        &self,
        tenant: &Tenant,
        path: &str,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let tenant = tenant.clone();
        let path = path.to_owned();
        self.read("list the versions of a path", move |connection| {
            let sql = include_str!("../queries/catalog_versions.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((tenant.as_str(), path), version)?.collect()
        })
        .await
    }

    async fn catalog_size(&self, tenant: &Tenant) -> Result<CatalogSize, StoreError> {
        let tenant = tenant.clone();
        self.read("measure the catalog", move |connection| {
            let sql = "select count(*), coalesce(sum(octet_length(content)), 0) from catalog \
                       where tenant_id = ?1";
            connection.prepare_cached(sql)?.query_row([tenant.as_str()], |row| {
                Ok(CatalogSize { documents: count(row, 0)?, bytes: count(row, 1)? })
            })
        })
        .await
    }

    async fn set_deleted(
        &self,
        tenant: &Tenant,
        path: &str,
        number: Option<u32>,
        at: Option<Timestamp>,
    ) -> Result<Vec<CatalogVersion>, StoreError> {
        let tenant = tenant.clone();
        let path = path.to_owned();
        self.write("delete or restore a catalog entry", move |connection, _| {
            let sql = include_str!("../queries/catalog_set_deleted.sql");
            let mut set = connection.prepare_cached(sql)?;
            let changed = set.query_map((tenant.as_str(), path, number, micros(at)), version)?;
            let mut changed = changed.collect::<rusqlite::Result<Vec<CatalogVersion>>>()?;
            changed.sort_by_key(|version| std::cmp::Reverse(version.version));
            Ok(changed)
        })
        .await
    }
}

/// Inserts the next version of a path. The single writer thread excludes concurrent calls.
fn register(connection: &Connection, tenant: &Tenant, entry: &NewEntry) -> rusqlite::Result<u32> {
    let sql = include_str!("../queries/catalog_register.sql");
    connection.prepare_cached(sql)?.query_row(
        params![
            entry.id.get(),
            tenant.as_str(),
            entry.path,
            entry.kind,
            entry.content,
            json_text(&entry.layout),
            json_text(&entry.payload),
            json_text(&entry.meta),
            entry.at.as_micros(),
        ],
        |row| row.get(0),
    )
}

fn head(row: &Row<'_>) -> rusqlite::Result<CatalogHead> {
    Ok(CatalogHead { id: CatalogId::new(row.get(0)?), path: row.get(1)?, version: row.get(2)? })
}

fn version(row: &Row<'_>) -> rusqlite::Result<CatalogVersion> {
    Ok(CatalogVersion {
        id: CatalogId::new(row.get(0)?),
        path: row.get(1)?,
        version: row.get(2)?,
        kind: row.get(3)?,
        created_at: Timestamp::from_micros(row.get(4)?),
        deleted_at: instant(row, 5)?,
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<CatalogEntry> {
    Ok(CatalogEntry {
        id: CatalogId::new(row.get(0)?),
        path: row.get(1)?,
        version: row.get(2)?,
        kind: row.get(3)?,
        content: row.get(4)?,
        layout: json(row, 5)?,
        payload: json(row, 6)?,
        meta: json(row, 7)?,
        created_at: Timestamp::from_micros(row.get(8)?),
        deleted_at: instant(row, 9)?,
    })
}

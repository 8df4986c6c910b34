//! Implements [`Objects`] on the table `object_store`, and [`Plugins`] on the table
//! `plugin_module`.

use async_trait::async_trait;
use noetl_model::Timestamp;
use noetl_store::{
    BlobRef, Object, ObjectSummary, Objects, Plugin, PluginSummary, Plugins, StoreError,
};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{count, digest, size};
use crate::encoded_append::rows;

#[async_trait]
impl Objects for SqliteStore {
    async fn put_object(
        &self,
        key: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ObjectSummary, StoreError> {
        let named = BlobRef::from_bytes(&bytes, media_type);
        let key = key.to_owned();
        self.write("keep an object", move |connection, now| {
            let summary = ObjectSummary {
                key,
                digest: named.digest,
                media_type: named.media_type,
                size: named.bytes,
                created_at: now,
            };
            let sql = include_str!("../queries/object_store_put.sql");
            connection.prepare_cached(sql)?.execute(params![
                summary.key,
                summary.digest.to_string(),
                summary.media_type,
                size(summary.size),
                summary.created_at.as_micros(),
                bytes,
            ])?;
            Ok(summary)
        })
        .await
    }

    async fn object(&self, key: &str) -> Result<Option<Object>, StoreError> {
        let key = key.to_owned();
        self.read("read an object", move |connection| {
            let sql = include_str!("../queries/object_store_get.sql");
            let object = |row: &Row<'_>| Ok(Object { summary: object(row)?, bytes: row.get(5)? });
            connection.prepare_cached(sql)?.query_row([key], object).optional()
        })
        .await
    }

    async fn delete_object(&self, key: &str) -> Result<bool, StoreError> {
        let key = key.to_owned();
        self.write("remove an object", move |connection, _| {
            let sql = "delete from object_store where object_key = ?1";
            Ok(connection.prepare_cached(sql)?.execute([key])? > 0)
        })
        .await
    }

    async fn objects(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        let prefix = prefix.to_owned();
        let after = after.map(str::to_owned);
        self.read("list objects", move |connection| {
            let sql = include_str!("../queries/object_store_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            let found = list.query_map((&prefix, after), object)?.take(limit);
            let is_inside = |summary: &ObjectSummary| summary.key.starts_with(&prefix);
            found.take_while(|row| row.as_ref().map_or(true, is_inside)).collect()
        })
        .await
    }

    async fn objects_ending(
        &self,
        suffix: &str,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        let suffix = suffix.to_owned();
        self.read("find objects by their end", move |connection| {
            let sql = include_str!("../queries/object_store_ending.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((suffix, rows(limit)), object)?.collect()
        })
        .await
    }
}

#[async_trait]
impl Plugins for SqliteStore {
    async fn put_plugin(
        &self,
        path: &str,
        version: i32,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<PluginSummary, StoreError> {
        let named = BlobRef::from_bytes(&bytes, media_type);
        let path = path.to_owned();
        self.write("keep a module", move |connection, now| {
            let summary = PluginSummary {
                path,
                version,
                digest: named.digest,
                media_type: named.media_type,
                size: named.bytes,
                created_at: now,
            };
            let sql = include_str!("../queries/plugin_module_put.sql");
            connection.prepare_cached(sql)?.execute(params![
                summary.path,
                summary.version,
                summary.digest.to_string(),
                summary.media_type,
                size(summary.size),
                summary.created_at.as_micros(),
                bytes,
            ])?;
            Ok(summary)
        })
        .await
    }

    async fn plugin(&self, path: &str, version: Option<i32>) -> Result<Option<Plugin>, StoreError> {
        let path = path.to_owned();
        self.read("read a module", move |connection| {
            let sql = include_str!("../queries/plugin_module_get.sql");
            let plugin = |row: &Row<'_>| Ok(Plugin { summary: plugin(row)?, bytes: row.get(6)? });
            connection.prepare_cached(sql)?.query_row((path, version), plugin).optional()
        })
        .await
    }

    async fn delete_plugin(&self, path: &str, version: i32) -> Result<bool, StoreError> {
        let path = path.to_owned();
        self.write("remove a module", move |connection, _| {
            let sql = "delete from plugin_module where path = ?1 and version = ?2";
            Ok(connection.prepare_cached(sql)?.execute((path, version))? > 0)
        })
        .await
    }

    async fn plugins(
        &self,
        prefix: &str,
        after: Option<(&str, i32)>,
        limit: usize,
    ) -> Result<Vec<PluginSummary>, StoreError> {
        let prefix = prefix.to_owned();
        let (after, version) = after.map(|(path, version)| (path.to_owned(), version)).unzip();
        self.read("list modules", move |connection| {
            let sql = include_str!("../queries/plugin_module_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            let found = list.query_map((&prefix, after, version), plugin)?.take(limit);
            let is_inside = |summary: &PluginSummary| summary.path.starts_with(&prefix);
            found.take_while(|row| row.as_ref().map_or(true, is_inside)).collect()
        })
        .await
    }
}

fn object(row: &Row<'_>) -> rusqlite::Result<ObjectSummary> {
    Ok(ObjectSummary {
        key: row.get(0)?,
        digest: digest(row, 1)?,
        media_type: row.get(2)?,
        size: count(row, 3)?,
        created_at: Timestamp::from_micros(row.get(4)?),
    })
}

fn plugin(row: &Row<'_>) -> rusqlite::Result<PluginSummary> {
    Ok(PluginSummary {
        path: row.get(0)?,
        version: row.get(1)?,
        digest: digest(row, 2)?,
        media_type: row.get(3)?,
        size: count(row, 4)?,
        created_at: Timestamp::from_micros(row.get(5)?),
    })
}

//! Implements [`Plugins`] on the table `plugin_module`.

use async_trait::async_trait;
use noetl_store::{BlobRef, Plugin, PluginSummary, Plugins, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, number, parsed};
use crate::error::no_row;

#[async_trait]
impl Plugins for PostgresStore {
    async fn put_plugin(
        &self,
        path: &str,
        version: i32,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<PluginSummary, StoreError> {
        let action = "keep a module";
        let digest = BlobRef::from_bytes(&bytes, media_type).digest.to_string();
        let sql = include_str!("../queries/plugin_module_put.sql");
        let make = || {
            let query = sqlx::query(sql).bind(path).bind(version);
            query.bind(&digest).bind(media_type).bind(&bytes)
        };
        let kept = self.change(action, make, plugin).await?;
        kept.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn plugin(&self, path: &str, version: Option<i32>) -> Result<Option<Plugin>, StoreError> {
        let sql = include_str!("../queries/plugin_module_get.sql");
        let whole = |row: &PgRow| Ok(Plugin { summary: plugin(row)?, bytes: row.try_get(6)? });
        self.one("read a module", || sqlx::query(sql).bind(path).bind(version), whole).await
    }

    async fn delete_plugin(&self, path: &str, version: i32) -> Result<bool, StoreError> {
        let sql = "delete from noetl.plugin_module where path = $1 and version = $2";
        let make = || sqlx::query(sql).bind(path).bind(version);
        Ok(self.touch("remove a module", make).await? > 0)
    }

    async fn plugins(
        &self,
        prefix: &str,
        after: Option<(&str, i32)>,
        limit: usize,
    ) -> Result<Vec<PluginSummary>, StoreError> {
        let (after, version) = after.unzip();
        let sql = include_str!("../queries/plugin_module_list.sql");
        let make = || sqlx::query(sql).bind(prefix).bind(after).bind(version).bind(rows(limit));
        self.list("list modules", make, plugin).await
    }
}

fn plugin(row: &PgRow) -> Result<PluginSummary, sqlx::Error> {
    Ok(PluginSummary {
        path: row.try_get(0)?,
        version: row.try_get(1)?,
        digest: parsed(row, 2, |text| text.parse().ok())?,
        media_type: row.try_get(3)?,
        size: number(row, 4)?,
        created_at: row.try_get::<PgTimestamptz, _>(5)?.0,
    })
}

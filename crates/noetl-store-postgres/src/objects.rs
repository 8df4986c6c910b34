//! Implements [`Objects`] on the table `object_store`.

use async_trait::async_trait;
use noetl_store::{BlobRef, Object, ObjectSummary, Objects, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::arrays::rows;
use crate::column::{PgTimestamptz, number, parsed};
use crate::error::no_row;

#[async_trait]
impl Objects for PostgresStore {
    async fn put_object(
        &self,
        key: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ObjectSummary, StoreError> {
        let action = "keep an object";
        let digest = BlobRef::from_bytes(&bytes, media_type).digest.to_string();
        let sql = include_str!("../queries/object_store_put.sql");
        let make = || sqlx::query(sql).bind(key).bind(&digest).bind(media_type).bind(&bytes);
        let kept = self.change(action, make, object).await?;
        kept.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn object(&self, key: &str) -> Result<Option<Object>, StoreError> {
        let sql = include_str!("../queries/object_store_get.sql");
        let whole = |row: &PgRow| Ok(Object { summary: object(row)?, bytes: row.try_get(5)? });
        self.one("read an object", || sqlx::query(sql).bind(key), whole).await
    }

    async fn delete_object(&self, key: &str) -> Result<bool, StoreError> {
        let sql = "delete from noetl.object_store where object_key = $1";
        Ok(self.touch("remove an object", || sqlx::query(sql).bind(key)).await? > 0)
    }

    async fn objects(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        let sql = include_str!("../queries/object_store_list.sql");
        let make = || sqlx::query(sql).bind(prefix).bind(after).bind(rows(limit));
        self.list("list objects", make, object).await
    }

    async fn objects_ending(
        &self,
        suffix: &str,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        let sql = include_str!("../queries/object_store_ending.sql");
        let make = || sqlx::query(sql).bind(suffix).bind(rows(limit));
        self.list("find objects by their end", make, object).await
    }
}

fn object(row: &PgRow) -> Result<ObjectSummary, sqlx::Error> {
    Ok(ObjectSummary {
        key: row.try_get(0)?,
        digest: parsed(row, 1, |text| text.parse().ok())?,
        media_type: row.try_get(2)?,
        size: number(row, 3)?,
        created_at: row.try_get::<PgTimestamptz, _>(4)?.0,
    })
}

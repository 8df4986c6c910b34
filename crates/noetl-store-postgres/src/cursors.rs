//! Implements [`CursorStore`] on the table `stream_cursor`.

use async_trait::async_trait;
use noetl_store::{CursorStore, CursorUpdate, Lease, StoreError};
use sqlx::Row;

use crate::PostgresStore;

#[async_trait]
impl CursorStore for PostgresStore {
    async fn cursor(&self, name: &str) -> Result<Option<i64>, StoreError> {
        let sql = "select position from noetl.stream_cursor where name = $1";
        self.one("read a cursor", || sqlx::query(sql).bind(name), |row| row.try_get(0)).await
    }

    async fn advance(
        &self,
        name: &str,
        position: i64,
        fence: Option<&Lease>,
    ) -> Result<CursorUpdate, StoreError> {
        let sql = include_str!("../queries/stream_cursor_advance.sql");
        let make = || {
            sqlx::query(sql)
                .bind(name)
                .bind(position)
                .bind(fence.map(|fence| &*fence.name))
                .bind(fence.map(|fence| &*fence.holder))
                .bind(fence.map(|fence| fence.epoch))
        };
        let decode = |row: &_| -> Result<CursorUpdate, sqlx::Error> {
            let (is_fenced, is_moved): (bool, bool) =
                (Row::try_get(row, 0)?, Row::try_get(row, 1)?);
            Ok(match (is_fenced, is_moved) {
                (true, _) => CursorUpdate::Fenced,
                (false, true) => CursorUpdate::Moved,
                (false, false) => CursorUpdate::Kept,
            })
        };
        let advanced = self.change("advance a cursor", make, decode).await?;
        Ok(advanced.into_iter().next().unwrap_or(CursorUpdate::Kept))
    }
}

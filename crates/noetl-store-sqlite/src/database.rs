//! Implements [`Database`]: information about the underlying database.

use async_trait::async_trait;
use noetl_store::{Database, StoreError};

use crate::SqliteStore;

#[async_trait]
impl Database for SqliteStore {
    async fn table_names(&self) -> Result<Vec<String>, StoreError> {
        self.read("list tables", |connection| {
            let sql = "select name from sqlite_schema where (type = 'table' or type = 'view') \
                       and name not like 'sqlite\\_%' escape '\\' order by name";
            let mut list = connection.prepare_cached(sql)?;
            list.query_map([], |row| row.get(0))?.collect()
        })
        .await
    }
}

//! Implements [`TokenStore`], the access tokens, on the table `token`.

use async_trait::async_trait;
use noetl_model::{Tenant, Timestamp};
use noetl_store::{AccessToken, NewToken, StoreError, TokenStore};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::digest;

#[async_trait]
impl TokenStore for SqliteStore {
    async fn put_token(&self, tenant: &Tenant, new: NewToken) -> Result<AccessToken, StoreError> {
        let tenant = tenant.clone();
        self.write("keep a token", move |connection, now| {
            let sql = include_str!("../queries/token_insert.sql");
            let mut insert = connection.prepare_cached(sql)?;
            let values = params![
                new.id,
                tenant.as_str(),
                new.hash.to_string(),
                new.name,
                new.role,
                now.as_micros(),
                new.expires_at.map(Timestamp::as_micros),
                new.pool,
            ];
            insert.query_row(values, token)
        })
        .await
    }

    async fn put_first_token(
        &self,
        tenant: &Tenant,
        new: NewToken,
    ) -> Result<Option<AccessToken>, StoreError> {
        let tenant = tenant.clone();
        self.write("keep the first token", move |connection, now| {
            let sql = include_str!("../queries/token_insert_first.sql");
            let mut insert = connection.prepare_cached(sql)?;
            let values = params![
                new.id,
                tenant.as_str(),
                new.hash.to_string(),
                new.name,
                new.role,
                now.as_micros(),
                new.expires_at.map(Timestamp::as_micros),
                new.pool,
            ];
            insert.query_row(values, token).optional()
        })
        .await
    }

    async fn token(&self, id: &str) -> Result<Option<AccessToken>, StoreError> {
        let id = id.to_owned();
        self.read("read a token", move |connection| {
            let sql = include_str!("../queries/token_get.sql");
            connection.prepare_cached(sql)?.query_row([id], token).optional()
        })
        .await
    }

    async fn tokens(&self, tenant: &Tenant) -> Result<Vec<AccessToken>, StoreError> {
        let tenant = tenant.clone();
        self.read("list tokens", move |connection| {
            let sql = include_str!("../queries/token_list.sql");
            connection.prepare_cached(sql)?.query_map([tenant.as_str()], token)?.collect()
        })
        .await
    }

    async fn revoke_token(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.write("revoke a token", move |connection, now| {
            let sql = include_str!("../queries/token_revoke.sql");
            let values = params![id, tenant.as_str(), now.as_micros()];
            Ok(connection.prepare_cached(sql)?.execute(values)? > 0)
        })
        .await
    }
}

fn token(row: &Row<'_>) -> rusqlite::Result<AccessToken> {
    let at = |index| row.get::<_, Option<i64>>(index);
    Ok(AccessToken {
        tenant: Tenant::new(row.get::<_, String>(1)?),
        kept: NewToken {
            id: row.get(0)?,
            hash: digest(row, 2)?,
            name: row.get(3)?,
            role: row.get(4)?,
            expires_at: at(6)?.map(Timestamp::from_micros),
            pool: row.get(8)?,
        },
        created_at: Timestamp::from_micros(row.get(5)?),
        revoked_at: at(7)?.map(Timestamp::from_micros),
    })
}

//! Implements [`TokenStore`], the access tokens, on the table `token`.

use async_trait::async_trait;
use noetl_model::Tenant;
use noetl_store::{AccessToken, DigestError, NewToken, StoreError, TokenStore};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::column::PgTimestamptz;
use crate::error::no_row;

#[async_trait]
impl TokenStore for PostgresStore {
    async fn put_token(&self, tenant: &Tenant, new: NewToken) -> Result<AccessToken, StoreError> {
        let action = "keep a token";
        let sql = include_str!("../queries/token_insert.sql");
        let kept = self.put_new_token(action, sql, tenant, &new).await?;
        kept.ok_or_else(|| no_row(action))
    }

    async fn put_first_token(
        &self,
        tenant: &Tenant,
        new: NewToken,
    ) -> Result<Option<AccessToken>, StoreError> {
        let sql = include_str!("../queries/token_insert_first.sql");
        self.put_new_token("keep the first token", sql, tenant, &new).await
    }

    async fn token(&self, id: &str) -> Result<Option<AccessToken>, StoreError> {
        let sql = include_str!("../queries/token_get.sql");
        self.one("read a token", || sqlx::query(sql).bind(id), token).await
    }

    async fn tokens(&self, tenant: &Tenant) -> Result<Vec<AccessToken>, StoreError> {
        let sql = include_str!("../queries/token_list.sql");
        self.list("list tokens", || sqlx::query(sql).bind(tenant.as_str()), token).await
    }

    async fn revoke_token(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let sql = include_str!("../queries/token_revoke.sql");
        let make = || sqlx::query(sql).bind(id).bind(tenant.as_str());
        Ok(self.touch("revoke a token", make).await? > 0)
    }
}

impl PostgresStore {
    async fn put_new_token(
        &self,
        action: &'static str,
        sql: &'static str,
        tenant: &Tenant,
        new: &NewToken,
    ) -> Result<Option<AccessToken>, StoreError> {
        let make = || {
            sqlx::query(sql)
                .bind(&new.id)
                .bind(tenant.as_str())
                .bind(new.hash.to_string())
                .bind(&new.name)
                .bind(&new.role)
                .bind(new.expires_at.map(PgTimestamptz::clamped))
                .bind(&new.pool)
        };
        Ok(self.change(action, make, token).await?.into_iter().next())
    }
}

fn token(row: &PgRow) -> Result<AccessToken, sqlx::Error> {
    let at = |index: usize| {
        Ok::<_, sqlx::Error>(row.try_get::<Option<PgTimestamptz>, _>(index)?.map(|at| at.0))
    };
    let hash: String = row.try_get(2)?;
    let wrong = |error: DigestError| sqlx::Error::Decode(Box::new(error));
    Ok(AccessToken {
        tenant: Tenant::new(row.try_get::<String, _>(1)?),
        kept: NewToken {
            id: row.try_get(0)?,
            hash: hash.parse().map_err(wrong)?,
            name: row.try_get(3)?,
            role: row.try_get(4)?,
            expires_at: at(6)?,
            pool: row.try_get(8)?,
        },
        created_at: row.try_get::<PgTimestamptz, _>(5)?.0,
        revoked_at: at(7)?,
    })
}

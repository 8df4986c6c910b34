//! Implements [`Grants`] on the table `access_grant`.

use async_trait::async_trait;
use noetl_model::Tenant;
use noetl_store::{Grant, GrantKind, Grants, NewGrant, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::column::PgTimestamptz;
use crate::error::no_row;

#[async_trait]
impl Grants for PostgresStore {
    async fn put_grant(&self, tenant: &Tenant, new: NewGrant) -> Result<Grant, StoreError> {
        let action = "store a grant";
        let sql = include_str!("../queries/access_grant_insert.sql");
        let make = || {
            sqlx::query(sql)
                .bind(&new.id)
                .bind(tenant.as_str())
                .bind(new.kind.as_str())
                .bind(&new.target)
                .bind(&new.subject)
                .bind(&new.prefix)
        };
        let kept = self.change(action, make, grant).await?;
        kept.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn grants(&self, tenant: &Tenant) -> Result<Vec<Grant>, StoreError> {
        let sql = include_str!("../queries/access_grant_list.sql");
        self.list("list grants", || sqlx::query(sql).bind(tenant.as_str()), grant).await
    }

    async fn remove_grant(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let sql = "delete from noetl.access_grant where grant_id = $1 and tenant_id = $2";
        let make = || sqlx::query(sql).bind(id).bind(tenant.as_str());
        Ok(self.touch("remove a grant", make).await? > 0)
    }
}

fn grant(row: &PgRow) -> Result<Grant, sqlx::Error> {
    let kind: String = row.try_get(2)?;
    let wrong = || sqlx::Error::Decode(format!("'{kind}' is no kind of grant").into());
    Ok(Grant {
        tenant: Tenant::new(row.try_get::<String, _>(1)?),
        kept: NewGrant {
            id: row.try_get(0)?,
            kind: GrantKind::from_text(&kind).ok_or_else(wrong)?,
            target: row.try_get(3)?,
            subject: row.try_get(4)?,
            prefix: row.try_get(5)?,
        },
        created_at: row.try_get::<PgTimestamptz, _>(6)?.0,
    })
}

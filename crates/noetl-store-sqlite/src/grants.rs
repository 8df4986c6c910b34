//! Implements [`Grants`] on the table `access_grant`.

use async_trait::async_trait;
use noetl_model::{Tenant, Timestamp};
use noetl_store::{Grant, GrantKind, Grants, NewGrant, StoreError};
use rusqlite::types::Type;
use rusqlite::{Row, params};

use crate::SqliteStore;

#[async_trait]
impl Grants for SqliteStore {
    async fn put_grant(&self, tenant: &Tenant, new: NewGrant) -> Result<Grant, StoreError> {
        let tenant = tenant.clone();
        self.write("store a grant", move |connection, now| {
            let sql = include_str!("../queries/access_grant_insert.sql");
            let values = params![
                new.id,
                tenant.as_str(),
                new.kind.as_str(),
                new.target,
                new.subject,
                new.prefix,
                now.as_micros(),
            ];
            connection.prepare_cached(sql)?.query_row(values, grant)
        })
        .await
    }

    async fn grants(&self, tenant: &Tenant) -> Result<Vec<Grant>, StoreError> {
        let tenant = tenant.clone();
        self.read("list grants", move |connection| {
            let sql = include_str!("../queries/access_grant_list.sql");
            connection.prepare_cached(sql)?.query_map([tenant.as_str()], grant)?.collect()
        })
        .await
    }

    async fn remove_grant(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.write("remove a grant", move |connection, _| {
            let sql = "delete from access_grant where grant_id = ?1 and tenant_id = ?2";
            Ok(connection.prepare_cached(sql)?.execute(params![id, tenant.as_str()])? > 0)
        })
        .await
    }
}

fn grant(row: &Row<'_>) -> rusqlite::Result<Grant> {
    let kind: String = row.get(2)?;
    let kind = GrantKind::from_text(&kind).ok_or_else(|| {
        let wrong = format!("'{kind}' is no kind of grant");
        rusqlite::Error::FromSqlConversionFailure(2, Type::Text, wrong.into())
    })?;
    Ok(Grant {
        tenant: Tenant::new(row.get::<_, String>(1)?),
        kept: NewGrant {
            id: row.get(0)?,
            kind,
            target: row.get(3)?,
            subject: row.get(4)?,
            prefix: row.get(5)?,
        },
        created_at: Timestamp::from_micros(row.get(6)?),
    })
}

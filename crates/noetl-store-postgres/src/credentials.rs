//! Implements [`CredentialStore`] on the table `credential`.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};
use noetl_store::{
    CredentialFilter, CredentialStore, NewCredential, SealedText, StoreError, StoredCredential,
};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::PostgresStore;
use crate::column::{PgTimestamptz, json, json_text};
use crate::error::no_row;

#[async_trait]
impl CredentialStore for PostgresStore {
    async fn put_credential(
        &self,
        tenant: &Tenant,
        new: NewCredential,
    ) -> Result<StoredCredential, StoreError> {
        let action = "keep a credential";
        let sql = include_str!("../queries/credential_put.sql");
        let make = || {
            sqlx::query(sql)
                .bind(new.id.get())
                .bind(tenant.as_str())
                .bind(&new.name)
                .bind(&new.kind)
                .bind(new.sealed.as_str())
                .bind(json_text(new.schema.as_ref()))
                .bind(json_text(new.meta.as_ref()))
                .bind(&new.tags)
                .bind(new.description.as_deref())
        };
        let kept = self.change(action, make, credential).await?;
        kept.into_iter().next().ok_or_else(|| no_row(action))
    }

    async fn credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<Option<StoredCredential>, StoreError> {
        let sql = include_str!("../queries/credential_get.sql");
        let make = || sqlx::query(sql).bind(id.get()).bind(tenant.as_str());
        self.one("read a credential", make, credential).await
    }

    async fn credential_named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<StoredCredential>, StoreError> {
        let sql = include_str!("../queries/credential_get_named.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(name);
        self.one("read a credential", make, credential).await
    }

    async fn credentials(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<StoredCredential>, StoreError> {
        let sql = include_str!("../queries/credential_list.sql");
        let make = || sqlx::query(sql).bind(tenant.as_str()).bind(filter.kind.as_deref());
        let mut found = self.list("list credentials", make, credential).await?;
        // Databases differ in case folding, so the filter is applied here.
        found.retain(|credential| filter.takes(&credential.kept));
        Ok(found)
    }

    async fn delete_credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<bool, StoreError> {
        let sql = "delete from noetl.credential where id = $1 and tenant_id = $2";
        let make = || sqlx::query(sql).bind(id.get()).bind(tenant.as_str());
        Ok(self.touch("remove a credential", make).await? > 0)
    }
}

fn credential(row: &PgRow) -> Result<StoredCredential, sqlx::Error> {
    let kept = NewCredential {
        id: CredentialId::new(row.try_get(0)?),
        name: row.try_get(1)?,
        kind: row.try_get(2)?,
        sealed: SealedText::new(row.try_get::<String, _>(3)?),
        schema: json(row, 4)?,
        meta: json(row, 5)?,
        tags: row.try_get(6)?,
        description: row.try_get(7)?,
    };
    Ok(StoredCredential {
        kept,
        created_at: row.try_get::<PgTimestamptz, _>(8)?.0,
        updated_at: row.try_get::<PgTimestamptz, _>(9)?.0,
    })
}

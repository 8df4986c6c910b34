//! Implements [`CredentialStore`] on the table `credential`.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant, Timestamp, Value};
use noetl_store::{
    CredentialFilter, CredentialStore, NewCredential, SealedText, StoreError, StoredCredential,
};
use rusqlite::{OptionalExtension, Row, params};

use crate::SqliteStore;
use crate::column::{json, json_text, parsed};

#[async_trait]
impl CredentialStore for SqliteStore {
    async fn put_credential(
        &self,
        tenant: &Tenant,
        new: NewCredential,
    ) -> Result<StoredCredential, StoreError> {
        let tenant = tenant.clone();
        self.write("keep a credential", move |connection, now| {
            let sql = include_str!("../queries/credential_put.sql");
            let values = params![
                new.id.get(),
                tenant.as_str(),
                new.name,
                new.kind,
                new.sealed.as_str(),
                json_text(&new.schema),
                json_text(&new.meta),
                Value::from(new.tags).to_string(),
                new.description,
                now.as_micros(),
            ];
            connection.prepare_cached(sql)?.query_row(values, credential)
        })
        .await
    }

    async fn credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<Option<StoredCredential>, StoreError> {
        let tenant = tenant.clone();
        self.read("read a credential", move |connection| {
            let sql = include_str!("../queries/credential_get.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((id.get(), tenant.as_str()), credential).optional()
        })
        .await
    }

    async fn credential_named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<StoredCredential>, StoreError> {
        let tenant = tenant.clone();
        let name = name.to_owned();
        self.read("read a credential", move |connection| {
            let sql = include_str!("../queries/credential_get_named.sql");
            let mut get = connection.prepare_cached(sql)?;
            get.query_row((tenant.as_str(), name), credential).optional()
        })
        .await
    }

    async fn credentials(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<StoredCredential>, StoreError> {
        let tenant = tenant.clone();
        let filter = filter.clone();
        self.read("list credentials", move |connection| {
            let sql = include_str!("../queries/credential_list.sql");
            let mut list = connection.prepare_cached(sql)?;
            list.query_map((tenant.as_str(), filter.kind, filter.text), credential)?.collect()
        })
        .await
    }

    async fn delete_credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.write("remove a credential", move |connection, _| {
            let sql = "delete from credential where id = ?1 and tenant_id = ?2";
            let removed = connection.prepare_cached(sql)?.execute((id.get(), tenant.as_str()))?;
            Ok(removed > 0)
        })
        .await
    }
}

fn credential(row: &Row<'_>) -> rusqlite::Result<StoredCredential> {
    let kept = NewCredential {
        id: CredentialId::new(row.get(0)?),
        name: row.get(1)?,
        kind: row.get(2)?,
        sealed: SealedText::new(row.get::<_, String>(3)?),
        schema: json(row, 4)?,
        meta: json(row, 5)?,
        tags: parsed(row, 6, |text| serde_json::from_str(text).ok())?,
        description: row.get(7)?,
    };
    Ok(StoredCredential {
        kept,
        created_at: Timestamp::from_micros(row.get(8)?),
        updated_at: Timestamp::from_micros(row.get(9)?),
    })
}

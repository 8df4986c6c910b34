//! Encodes events as rows of the outbox.

use std::collections::HashMap;

use noetl_model::Tenant;
use noetl_store::outbox::{Envelope, subject};
use sqlx::{PgConnection, Row};

use crate::arrays::{AppendChain, EncodedAppend, OutboxEvent};

/// Maximum number of executions whose tenants are cached.
const TENANTS_MAX: usize = 10_000;

/// Builds outbox rows. An append contains the tenant only if it starts an execution. The tenant of
/// an execution never changes, so it is queried once and cached.
#[derive(Debug, Default)]
pub(crate) struct OutboxWriter {
    tenants: HashMap<i64, Tenant>,
}

impl OutboxWriter {
    /// Returns the outbox rows of these chains, in the order of the items in their group.
    pub(crate) async fn outgoing(
        &mut self,
        connection: &mut PgConnection,
        chains: &[AppendChain<'_>],
        places: &[Vec<usize>],
    ) -> Result<Vec<OutboxEvent>, sqlx::Error> {
        self.learn(connection, chains).await?;
        let mut items = Vec::new();
        for (chain, places) in chains.iter().zip(places) {
            let Some(first) = chain.first() else { continue };
            // If the execution doesn't exist, the append is rejected, too.
            let start = first.start.as_ref().map(|start| &start.tenant);
            let tenant = start.or_else(|| self.tenants.get(&first.execution()));
            let Some(tenant) = tenant else { continue };
            items.extend(places.iter().zip(chain).map(|(place, item)| (place, tenant, item)));
        }
        items.sort_unstable_by_key(|(place, ..)| **place);
        let mut rows = Vec::new();
        for (_, tenant, item) in items {
            add(&mut rows, tenant, item)?;
        }
        Ok(rows)
    }

    /// Queries the tenants of executions that these chains don't start and that are not cached.
    async fn learn(
        &mut self,
        connection: &mut PgConnection,
        chains: &[AppendChain<'_>],
    ) -> Result<(), sqlx::Error> {
        let firsts = chains.iter().filter_map(|chain| chain.first());
        let going_on = firsts.filter(|first| first.start.is_none()).map(|first| first.execution());
        let mut unknown: Vec<i64> =
            going_on.clone().filter(|execution| !self.tenants.contains_key(execution)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        if self.tenants.len() + unknown.len() > TENANTS_MAX {
            // Query all executions of the group, including those that were cached.
            self.tenants.clear();
            unknown = going_on.collect();
        }
        let sql =
            "select execution_id, tenant_id from noetl.execution where execution_id = any ($1)";
        for row in sqlx::query(sql).persistent(false).bind(unknown).fetch_all(connection).await? {
            let tenant = Tenant::new(row.try_get::<&str, _>(1)?);
            self.tenants.insert(row.try_get(0)?, tenant);
        }
        Ok(())
    }
}

fn add(
    rows: &mut Vec<OutboxEvent>,
    tenant: &Tenant,
    item: &EncodedAppend,
) -> Result<(), sqlx::Error> {
    let mut previous = item.after;
    for row in &item.events {
        let envelope = Envelope { tenant, catalog: item.row.catalog, previous, row };
        let body = envelope.payload().map_err(|error| sqlx::Error::Encode(error.into()))?;
        rows.push(OutboxEvent {
            execution: row.execution_id,
            event: row.event_id,
            tenant: tenant.clone(),
            subject: subject(row.event_type.as_deref()),
            body,
        });
        previous = Some(row.event_id);
    }
    Ok(())
}

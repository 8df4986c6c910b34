//! Creates the partitions of the event log before they are needed.

use sqlx::{Connection, PgConnection};
use tracing::{info, warn};

use crate::migrate;

/// Creates the partitions of the current quarter and the next four, and returns their names.
///
/// Warns if the default partition contains rows, which can result only from a wrong clock or a
/// missed run of this function.
pub(crate) async fn make_ahead(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    migrate::lock(&mut transaction).await?;
    let sql = "select noetl.event_partitions_ahead_2(now())";
    let made: Vec<Option<String>> =
        sqlx::query_scalar(sql).persistent(false).fetch_all(&mut *transaction).await?;
    let made: Vec<String> = made.into_iter().flatten().collect();
    let sql = "select exists (select from noetl.event_append_default)";
    let is_strayed: bool =
        sqlx::query_scalar(sql).persistent(false).fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    if !made.is_empty() {
        info!(partitions = made.join(", "), "created event log partitions");
    }
    if is_strayed {
        warn!("event log default partition has rows: an execution ID is outside every quarter");
    }
    Ok(made)
}

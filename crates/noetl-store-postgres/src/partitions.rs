//! The log's partitions, made before they are needed.

use sqlx::{Connection, PgConnection};
use tracing::{info, warn};

use crate::migrate;

/// Makes the partitions of this quarter and the next four, and says when rows ended up in the
/// default one, which nothing but a wrong clock or a missed run of this can bring about.
pub(crate) async fn make_ahead(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    migrate::lock(&mut transaction).await?;
    let sql = "select noetl.event_partitions_ahead_1(now())";
    let made: Vec<Option<String>> =
        sqlx::query_scalar(sql).persistent(false).fetch_all(&mut *transaction).await?;
    let made: Vec<String> = made.into_iter().flatten().collect();
    let sql = "select exists (select from noetl.event_default)";
    let is_strayed: bool =
        sqlx::query_scalar(sql).persistent(false).fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    if !made.is_empty() {
        info!(partitions = made.join(", "), "partitions of the log were made");
    }
    if is_strayed {
        warn!("the log's default partition holds rows: an execution id is outside every quarter");
    }
    Ok(made)
}

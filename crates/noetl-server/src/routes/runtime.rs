//! Where executions are.

use noetl_api::Id;
use noetl_api::internal::{ServerShard, ShardInfo};
use noetl_model::{ExecutionId, shard_for};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::document::Failures;
use crate::http::extract::{Json, Query};

/// The most shards one may ask about.
const SHARDS_MAX: u32 = 1024;

/// What is asked.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShardQuery {
    /// The execution.
    #[param(value_type = Id)]
    execution_id: String,
    /// How many shards there are, up to 1024; one when left out.
    #[param(value_type = Option<u32>)]
    shard_count: Option<String>,
}

/// Which shard an execution is in
#[utoipa::path(
    get,
    path = "/api/runtime/shard-info",
    tag = "workers",
    params(ShardQuery),
    responses((status = 200, body = ShardInfo), Failures),
)]
pub(crate) async fn shard_info(
    Query(asked): Query<ShardQuery>,
) -> Result<Json<ShardInfo>, ApiError> {
    let id: i64 = asked.execution_id.trim().parse().map_err(|_| {
        ApiError::query(format!("execution_id is a 64-bit number, not '{}'", asked.execution_id))
    })?;
    let text = asked.shard_count.as_deref().unwrap_or("1").trim();
    let count = text.parse().ok().filter(|count| (1..=SHARDS_MAX).contains(count));
    let shard_count = count.ok_or_else(|| {
        ApiError::query(format!("shard_count is a number from 1 to {SHARDS_MAX}, not '{text}'"))
    })?;
    let execution = ExecutionId::new(id);
    Ok(Json(ShardInfo {
        execution_id: execution.into(),
        shard_count,
        shard_index: shard_for(execution, shard_count),
        source: "noetl-server".to_owned(),
        hash_function: "twox_hash::XxHash64".to_owned(),
        seed: 0,
        // Every server answers for every execution.
        server_config: ServerShard { shard_index: 0, shard_count: 1 },
    }))
}

//! Route that returns the shard of an execution.

use noetl_api::Id;
use noetl_api::internal::{ServerShard, ShardInfo};
use noetl_model::{ExecutionId, shard_for};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::http::extract::{Json, Query};
use crate::http::openapi::ErrorResponses;

/// Maximum number of shards in a request.
const SHARDS_MAX: u32 = 1024;

/// Query parameters of the shard lookup.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShardQuery {
    /// ID of the execution.
    #[param(value_type = Id)]
    execution_id: String,
    /// Number of shards, from 1 to 1,024. Default: 1.
    #[param(value_type = Option<u32>)]
    shard_count: Option<String>,
}

/// Returns the shard of an execution
#[utoipa::path(
    get,
    path = "/api/runtime/shard-info",
    tag = "workers",
    params(ShardQuery),
    responses((status = 200, body = ShardInfo), ErrorResponses),
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
        // Every server serves all executions.
        server_config: ServerShard { shard_index: 0, shard_count: 1 },
    }))
}

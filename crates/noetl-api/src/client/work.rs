//! Calls of remote workers that hold command leases.

use bytes::Bytes;
use noetl_model::{ExecutionId, Value};

use super::Call;
use crate::credentials::SealedCredential;
use crate::ends::{ContentKept, EndsReply, EndsRequest};
use crate::logs::{LogAccepted, LogRequest};
use crate::workers::{
    HeartbeatReply, HeartbeatRequest, LeaseReply, LeaseRequest, RegisterRequest, RuntimeNamed,
    RuntimeReply, RuntimeView,
};

/// Registers a worker, or updates the registration of a known name.
///
/// A different `worker_public_key` means a new process: the server ends the leases of the previous
/// process with that name.
pub fn register(request: &RegisterRequest) -> Call<RuntimeView> {
    Call::post(["api", "worker", "pool", "register"], request)
}

/// Deregisters a worker. With `release`, the server also ends the worker's leases.
pub fn deregister(named: &RuntimeNamed) -> Call<RuntimeReply> {
    Call::post(["api", "worker", "pool", "deregister"], named)
}

/// Claims commands and leases them to the worker. A long poll: the server responds when commands
/// are available or `wait_seconds` have passed.
pub fn lease(request: &LeaseRequest) -> Call<LeaseReply> {
    Call::post(["api", "worker", "lease"], request)
}

/// Renews the leases of the commands that the worker runs.
pub fn heartbeat(request: &HeartbeatRequest) -> Call<HeartbeatReply> {
    Call::post(["api", "worker", "heartbeat"], request)
}

/// Reports completions of commands. Resending a completion is harmless.
pub fn report(request: &EndsRequest) -> Call<EndsReply> {
    Call::post(["api", "worker", "report"], request)
}

/// Stores a blob under its SHA-256 digest. Send with [`Client::carry`](super::Client::carry).
pub fn put_content(digest: &str, content: Bytes) -> Call<ContentKept> {
    Call::put(["api", "worker", "content", digest], content)
}

/// Returns a blob of `bytes` bytes by its SHA-256 digest. Send with
/// [`Client::bring`](super::Client::bring).
pub fn content(digest: &str, bytes: u64) -> Call<()> {
    Call::get(["api", "worker", "content", digest]).with("bytes", Some(bytes))
}

/// Resolves a result reference to its value.
pub fn resolve(reference: &str) -> Call<Value> {
    Call::get(["api", "result", "resolve"]).with("ref", Some(reference))
}

/// Returns a credential that is encrypted for one worker, with placeholders for its fields.
pub fn sealed_credential(
    alias: &str,
    worker: &str,
    execution: ExecutionId,
) -> Call<SealedCredential> {
    Call::get(["api", "credentials", alias, "sealed"])
        .with("worker_id", Some(worker))
        .with("execution_id", Some(execution))
        .with("placeholders", Some(true))
}

/// Appends lines to the step logs of an execution.
pub fn print(execution: ExecutionId, request: &LogRequest) -> Call<LogAccepted> {
    Call::post(["api", "executions", &execution.to_string(), "logs"], request)
}

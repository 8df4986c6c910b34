//! Calls of remote workers that hold command leases.

use bytes::Bytes;
use noetl_model::{ExecutionId, Value};

use super::ApiCall;
use crate::completions::{CompletionsReply, CompletionsRequest, ContentStored};
use crate::credentials::SealedCredential;
use crate::logs::{LogAccepted, LogRequest};
use crate::workers::{
    CommandLeaseRequest, HeartbeatReply, HeartbeatRequest, LeaseReply, RegisterRequest,
    RuntimeNamed, RuntimeReply, RuntimeView,
};

/// Registers a worker, or updates the registration of a known name.
///
/// A different `worker_public_key` means a new process: the server ends the leases of the previous
/// process with that name.
pub fn register(request: &RegisterRequest) -> ApiCall<RuntimeView> {
    ApiCall::post(["api", "worker", "pool", "register"], request)
}

/// Deregisters a worker. With `release`, the server also ends the worker's leases.
pub fn deregister(named: &RuntimeNamed) -> ApiCall<RuntimeReply> {
    ApiCall::post(["api", "worker", "pool", "deregister"], named)
}

/// Claims commands and leases them to the worker. A long poll: the server responds when commands
/// are available or `wait_seconds` have passed.
pub fn lease(request: &CommandLeaseRequest) -> ApiCall<LeaseReply> {
    ApiCall::post(["api", "worker", "lease"], request)
}

/// Renews the leases of the commands that the worker runs.
pub fn heartbeat(request: &HeartbeatRequest) -> ApiCall<HeartbeatReply> {
    ApiCall::post(["api", "worker", "heartbeat"], request)
}

/// Reports completions of commands. Resending a completion is harmless.
pub fn report(request: &CompletionsRequest) -> ApiCall<CompletionsReply> {
    ApiCall::post(["api", "worker", "report"], request)
}

/// Stores a blob under its SHA-256 digest. Send with [`Client::carry`](super::Client::carry).
pub fn put_content(digest: &str, content: Bytes) -> ApiCall<ContentStored> {
    ApiCall::put(["api", "worker", "content", digest], content)
}

/// Returns a blob of `bytes` bytes by its SHA-256 digest. Send with
/// [`Client::bring`](super::Client::bring).
pub fn content(digest: &str, bytes: u64) -> ApiCall<()> {
    ApiCall::get(["api", "worker", "content", digest]).with("bytes", Some(bytes))
}

/// Resolves a result reference to its value.
pub fn resolve(reference: &str) -> ApiCall<Value> {
    ApiCall::get(["api", "result", "resolve"]).with("ref", Some(reference))
}

/// Returns a credential that is encrypted for one worker, with placeholders for its fields.
pub fn sealed_credential(
    alias: &str,
    worker: &str,
    execution: ExecutionId,
) -> ApiCall<SealedCredential> {
    ApiCall::get(["api", "credentials", alias, "sealed"])
        .with("worker_id", Some(worker))
        .with("execution_id", Some(execution))
        .with("placeholders", Some(true))
}

/// Appends lines to the step logs of an execution.
pub fn print(execution: ExecutionId, request: &LogRequest) -> ApiCall<LogAccepted> {
    ApiCall::post(["api", "executions", &execution.to_string(), "logs"], request)
}

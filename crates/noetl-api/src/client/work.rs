//! The calls of a worker that names what it holds.

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

/// Says that a worker is there, and what it is.
pub fn register(request: &RegisterRequest) -> Call<RuntimeView> {
    Call::post(["api", "worker", "pool", "register"], request)
}

/// Says that a worker goes.
pub fn deregister(named: &RuntimeNamed) -> Call<RuntimeReply> {
    Call::post(["api", "worker", "pool", "deregister"], named)
}

/// Takes commands, as soon as there are some.
pub fn lease(request: &LeaseRequest) -> Call<LeaseReply> {
    Call::post(["api", "worker", "lease"], request)
}

/// Says which commands still run.
pub fn heartbeat(request: &HeartbeatRequest) -> Call<HeartbeatReply> {
    Call::post(["api", "worker", "heartbeat"], request)
}

/// Says how commands ended.
pub fn report(request: &EndsRequest) -> Call<EndsReply> {
    Call::post(["api", "worker", "report"], request)
}

/// Keeps content under its digest; see [`Client::carry`](super::Client::carry).
pub fn put_content(digest: &str, content: Bytes) -> Call<ContentKept> {
    Call::put(["api", "worker", "content", digest], content)
}

/// Reads content of so many bytes by its digest; see [`Client::bring`](super::Client::bring).
pub fn content(digest: &str, bytes: u64) -> Call<()> {
    Call::get(["api", "worker", "content", digest]).with("bytes", Some(bytes))
}

/// Reads what a reference names.
pub fn resolve(reference: &str) -> Call<Value> {
    Call::get(["api", "result", "resolve"]).with("ref", Some(reference))
}

/// A credential that only this worker can open.
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

/// Hands in what a command printed.
pub fn print(execution: ExecutionId, request: &LogRequest) -> Call<LogAccepted> {
    Call::post(["api", "executions", &execution.to_string(), "logs"], request)
}

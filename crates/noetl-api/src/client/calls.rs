//! API calls that people and workers make. Each function builds a [`ApiCall`] with the type of its
//! response.

mod access;

use noetl_model::{CommandId, ExecutionId, Value};
use reqwest::StatusCode;

pub use access::{audit_between, create_code, create_grant, grants, remove_grant};

use super::ApiCall;
use crate::approvals::ApprovalList;
use crate::catalog::{
    CatalogItem, CheckReply, CheckRequest, ListReply, ListRequest, RegisterBatchReply,
    RegisterBatchRequest, RegisterReply, RegisterRequest, ResourceRequest,
};
use crate::commands::{ClaimReply, ClaimRequest, Command};
use crate::credentials::{
    CredentialDeleted, CredentialList, CredentialView, PutCredential, SecretAuditReply,
};
use crate::database::{SqlReply, SqlRequest};
use crate::ehdb::{EhdbEvents, EhdbExecutions, EhdbState};
use crate::events::{EventReply, EventRequest, EventsReply};
use crate::execute::{ExecuteBatchReply, ExecuteBatchRequest, ExecuteReply, ExecuteRequest};
use crate::executions::{
    AnswerReply, AnswerRequest, CancelReply, CancelRequest, CleanupReply, CleanupRequest,
    ExecutionDetail, ExecutionView, ForkReply, ForkRequest, RerunRequest, RetryRequest,
    StatusReply,
};
use crate::health::Health;
use crate::logs::LogReply;
use crate::replay::ReplayQuery;
use crate::schedules::{ScheduleDeleted, ScheduleList, ScheduleRequest, ScheduleView};
use crate::subscriptions::{
    DeadLetterReply, DeadLetterRequest, LeaseReply, ReleaseRequest, SubscribeRequest,
    SubscriptionEvents, SubscriptionLeaseRequest, SubscriptionList, SubscriptionStatus,
};
use crate::tokens::{MadeToken, NewToken, TokenList, TokenRevoked, Whoami};
use crate::why::WhyReply;
use crate::workers::RuntimeView;

/// Returns the health of the control plane. Status 503 is a response, not an error.
pub fn health() -> ApiCall<Health> {
    ApiCall::get(["api", "health"]).also(StatusCode::SERVICE_UNAVAILABLE)
}

/// Returns the identity, tenant, and roles of the caller.
pub fn whoami() -> ApiCall<Whoami> {
    ApiCall::get(["api", "whoami"])
}

/// Registers a document. With `force`, registers it even if it has errors.
pub fn register(request: &RegisterRequest, force: bool) -> ApiCall<RegisterReply> {
    ApiCall::post(["api", "catalog", "register"], request).with("force", force.then_some("true"))
}

/// Registers several documents, one after the other. A failure doesn't affect the other documents.
pub fn register_batch(request: &RegisterBatchRequest, force: bool) -> ApiCall<RegisterBatchReply> {
    ApiCall::post(["api", "catalog", "register", "batch"], request)
        .with("force", force.then_some("true"))
}

/// Checks a document without storing it.
pub fn validate(request: &CheckRequest) -> ApiCall<CheckReply> {
    ApiCall::post(["api", "catalog", "validate"], request)
}

/// Returns all versions of documents, newest first. `kind` restricts the list to one kind.
pub fn documents(kind: Option<&str>) -> ApiCall<ListReply> {
    let request = ListRequest { resource_type: kind.map(str::to_owned) };
    ApiCall::post(["api", "catalog", "list"], &request)
}

/// Returns one document by ID, or by path and version.
pub fn document(request: &ResourceRequest) -> ApiCall<CatalogItem> {
    ApiCall::post(["api", "catalog", "resource"], request)
}

/// Starts an execution of a playbook.
pub fn execute(request: &ExecuteRequest) -> ApiCall<ExecuteReply> {
    ApiCall::post(["api", "execute"], request)
}

/// Starts several executions. A failure doesn't affect the other executions.
pub fn execute_batch(request: &ExecuteBatchRequest) -> ApiCall<ExecuteBatchReply> {
    ApiCall::post(["api", "execute", "batch"], request)
}

/// Filter and page of [`executions`]. `None` means no restriction, or the server's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionQuery {
    /// Status: `RUNNING`, `COMPLETED`, `FAILED`, or `CANCELLED`.
    pub status: Option<String>,
    /// Substring of the catalog path, case-insensitive.
    pub path: Option<String>,
    /// ID of the parent execution.
    pub parent: Option<ExecutionId>,
    /// Maximum number of executions. Default: 50. The server returns at most 100.
    pub limit: Option<u64>,
    /// Number of executions to skip. Default: 0.
    pub offset: Option<u64>,
}

/// Returns executions, newest start first.
pub fn executions(which: &ExecutionQuery) -> ApiCall<Vec<ExecutionView>> {
    ApiCall::get(["api", "executions"])
        .with("status", which.status.as_ref())
        .with("path", which.path.as_ref())
        .with("parent_execution_id", which.parent)
        .with("limit", which.limit)
        .with("offset", which.offset)
}

/// Returns an execution with its events, oldest first. The server limits a response to the newest
/// 100,000 events.
pub fn execution(id: ExecutionId) -> ApiCall<ExecutionDetail> {
    ApiCall::get(["api", "executions", &id.to_string()])
}

/// Returns the status of an execution.
pub fn status(id: ExecutionId) -> ApiCall<StatusReply> {
    ApiCall::get(["api", "executions", &id.to_string(), "status"])
}

/// Returns events of an execution with a sequence number above `after`, oldest first. Default of
/// `limit`: 500. The server returns at most 2,000.
pub fn events(id: ExecutionId, after: u64, limit: Option<usize>) -> ApiCall<EventsReply> {
    ApiCall::get(["api", "executions", &id.to_string(), "events"])
        .with("after", Some(after))
        .with("limit", limit)
}

/// Streams the events of an execution as they are committed. Read with
/// [`Client::follow`](super::Client::follow).
pub fn stream(id: ExecutionId) -> ApiCall<()> {
    ApiCall::get(["api", "executions", &id.to_string(), "stream"])
}

/// Returns step logs of an execution after line number `after`. `command` restricts them to one
/// command. Default of `limit`: 500. The server returns at most 5,000.
pub fn logs(
    id: ExecutionId,
    command: Option<&str>,
    after: u64,
    limit: Option<u64>,
) -> ApiCall<LogReply> {
    ApiCall::get(["api", "executions", &id.to_string(), "logs"])
        .with("command", command)
        .with("after", Some(after))
        .with("limit", limit)
}

/// Streams step logs of an execution as they are written. Read with
/// [`Client::follow`](super::Client::follow).
pub fn log_stream(id: ExecutionId, command: Option<&str>) -> ApiCall<()> {
    ApiCall::get(["api", "executions", &id.to_string(), "logs"])
        .with("command", command)
        .with("follow", Some("true"))
}

/// Returns the waits of a running execution, or the reason why an execution ended.
pub fn why(id: ExecutionId) -> ApiCall<WhyReply> {
    ApiCall::get(["api", "executions", &id.to_string(), "why"])
}

/// Returns the state of an execution as of an event or time.
pub fn replay(query: &ReplayQuery) -> ApiCall<Value> {
    ApiCall::get(["api", "replay", "state"])
        .with("execution_id", query.execution_id.as_ref())
        .with("tenant_id", query.tenant_id.as_ref())
        .with("organization_id", query.organization_id.as_ref())
        .with("as_of_event_id", query.as_of_event_id.as_ref())
        .with("as_of_position", query.as_of_position.as_ref())
        .with("as_of_time", query.as_of_time.as_ref())
        .with("projection", query.projection.as_ref())
        .with("limit", query.limit.as_ref())
        .with("resolve_payloads", query.resolve_payloads.as_ref())
}

/// Cancels an execution. Child executions that it waits for are cancelled with it.
pub fn cancel(id: ExecutionId, request: &CancelRequest) -> ApiCall<CancelReply> {
    ApiCall::post(["api", "executions", &id.to_string(), "cancel"], request)
}

/// Returns up to `limit` pending approvals, oldest first.
pub fn approvals(limit: usize) -> ApiCall<ApprovalList> {
    ApiCall::get(["api", "approvals"]).with("limit", Some(limit))
}

/// Answers a parked command, such as an approval.
pub fn answer(id: ExecutionId, command: CommandId, body: &AnswerRequest) -> ApiCall<AnswerReply> {
    ApiCall::post(["api", "executions", &id.to_string(), "answers", &command.to_string()], body)
}

/// Starts an execution that continues from an event of another execution.
pub fn fork(id: ExecutionId, request: &ForkRequest) -> ApiCall<ForkReply> {
    ApiCall::post(["api", "executions", &id.to_string(), "fork"], request)
}

/// Starts an execution that repeats the failed part of another execution.
pub fn retry(id: ExecutionId, request: &RetryRequest) -> ApiCall<ForkReply> {
    ApiCall::post(["api", "executions", &id.to_string(), "retry"], request)
}

/// Starts an execution of the same playbook version with the workload of another execution.
pub fn rerun(id: ExecutionId, request: &RerunRequest) -> ApiCall<ExecuteReply> {
    ApiCall::post(["api", "executions", &id.to_string(), "rerun"], request)
}

/// Cancels running executions that started long ago, at most 500 per call.
pub fn cleanup(request: &CleanupRequest) -> ApiCall<CleanupReply> {
    ApiCall::post(["api", "executions", "cleanup"], request)
}

/// Reports an event of an execution, as workers do.
pub fn report(event: &EventRequest) -> ApiCall<EventReply> {
    ApiCall::post(["api", "events"], event)
}

/// Returns a command by its ID.
pub fn command(id: CommandId) -> ApiCall<Command> {
    ApiCall::get(["api", "commands", &id.to_string()])
}

/// Claims a command for a worker that reads the `native` encoding.
pub fn claim(id: CommandId, worker_id: &str) -> ApiCall<ClaimReply> {
    let dialect = Some("native".to_owned());
    let request = ClaimRequest { worker_id: worker_id.to_owned(), dialect };
    ApiCall::post(["api", "commands", &id.to_string(), "claim"], &request)
}

/// Stores a credential. Replaces the credential with the same name, if any.
pub fn put_credential(request: &PutCredential) -> ApiCall<CredentialView> {
    ApiCall::post(["api", "credentials"], request)
}

/// Returns credentials without their secrets, sorted by name. `kind` restricts them to one type,
/// `q` to names and descriptions that contain a text.
pub fn credentials(kind: Option<&str>, q: Option<&str>) -> ApiCall<CredentialList> {
    ApiCall::get(["api", "credentials"]).with("type", kind).with("q", q)
}

/// Returns a credential by name or ID. Includes the secret if `include_data` is set.
pub fn credential(name: &str, include_data: bool) -> ApiCall<CredentialView> {
    ApiCall::get(["api", "credentials", name]).with("include_data", Some(include_data))
}

/// Deletes a credential by name or ID.
pub fn delete_credential(name: &str) -> ApiCall<CredentialDeleted> {
    ApiCall::delete(["api", "credentials", name])
}

/// Registers a subscription for the document at a catalog path.
pub fn subscribe(path: &str) -> ApiCall<SubscriptionStatus> {
    let request = SubscribeRequest { path: path.to_owned() };
    ApiCall::post(["api", "subscriptions"], &request)
}

/// Returns all subscriptions, including deactivated ones.
pub fn subscriptions() -> ApiCall<SubscriptionList> {
    ApiCall::get(["api", "subscriptions"])
}

/// Returns a subscription by its ID.
pub fn subscription(id: i64) -> ApiCall<SubscriptionStatus> {
    ApiCall::get(["api", "subscriptions", &id.to_string()])
}

/// Changes the state of a subscription. `action`: `activate`, `pause`, `resume`, `drain`, or
/// `deactivate`.
pub fn move_subscription(id: i64, action: &str) -> ApiCall<SubscriptionStatus> {
    let nothing = serde_json::json!({});
    ApiCall::post(["api", "subscriptions", &id.to_string(), action], &nothing)
}

/// Returns events of a subscription with a sequence number above `after`, oldest first. Default of
/// `limit`: 500. The server returns at most 2,000.
pub fn subscription_events(
    id: i64,
    after: u64,
    limit: Option<usize>,
) -> ApiCall<SubscriptionEvents> {
    ApiCall::get(["api", "subscriptions", &id.to_string(), "events"])
        .with("after", Some(after))
        .with("limit", limit)
}

/// Acquires or renews the lease of a subscription for a runtime.
pub fn lease_subscription(id: i64, request: &SubscriptionLeaseRequest) -> ApiCall<LeaseReply> {
    ApiCall::post(["api", "subscriptions", &id.to_string(), "lease"], request)
}

/// Releases a runtime's lease of a subscription, or its registration as waiting for the lease.
pub fn release_subscription(id: i64, holder: &str) -> ApiCall<SubscriptionStatus> {
    let request = ReleaseRequest { holder: holder.to_owned() };
    ApiCall::post(["api", "subscriptions", &id.to_string(), "release"], &request)
}

/// Stores a message that can't be dispatched as a dead letter.
pub fn dead_letter(id: i64, request: &DeadLetterRequest) -> ApiCall<DeadLetterReply> {
    ApiCall::post(["api", "subscriptions", &id.to_string(), "dead-letters"], request)
}

/// Returns all schedules in ID order.
pub fn schedules() -> ApiCall<ScheduleList> {
    ApiCall::get(["api", "schedules"])
}

/// Returns a schedule by its ID.
pub fn schedule(id: i64) -> ApiCall<ScheduleView> {
    ApiCall::get(["api", "schedules", &id.to_string()])
}

/// Creates a schedule that starts a playbook.
pub fn create_schedule(request: &ScheduleRequest) -> ApiCall<ScheduleView> {
    ApiCall::post(["api", "schedules"], request)
}

/// Pauses or resumes a schedule. `action`: `pause` or `resume`.
pub fn act_on_schedule(id: i64, action: &str) -> ApiCall<ScheduleView> {
    let nothing = serde_json::json!({});
    ApiCall::post(["api", "schedules", &id.to_string(), action], &nothing)
}

/// Starts the playbook of a schedule now. The next scheduled run is unchanged, and the overlap
/// policy doesn't apply.
pub fn run_schedule(id: i64) -> ApiCall<ExecuteReply> {
    let nothing = serde_json::json!({});
    ApiCall::post(["api", "schedules", &id.to_string(), "run"], &nothing)
}

/// Deletes a schedule. Executions that it started continue.
pub fn delete_schedule(id: i64) -> ApiCall<ScheduleDeleted> {
    ApiCall::delete(["api", "schedules", &id.to_string()])
}

/// Returns registered workers. `status` is an exact match, `name` a substring.
pub fn workers(status: Option<&str>, name: Option<&str>) -> ApiCall<Vec<RuntimeView>> {
    ApiCall::get(["api", "worker", "pools"]).with("status", status).with("name", name)
}

/// Creates an access token. Only this response contains the secret.
pub fn create_token(request: &NewToken) -> ApiCall<MadeToken> {
    ApiCall::post(["api", "tokens"], request)
}

/// Returns the access tokens of the caller's tenant, oldest first.
pub fn tokens() -> ApiCall<TokenList> {
    ApiCall::get(["api", "tokens"])
}

/// Revokes an access token. Other servers on the same database reject it within seconds.
pub fn revoke_token(id: &str) -> ApiCall<TokenRevoked> {
    ApiCall::delete(["api", "tokens", id])
}

/// Returns up to `limit` audit records of secret requests, latest first.
pub fn audit(
    credential: Option<&str>,
    execution: Option<ExecutionId>,
    limit: usize,
) -> ApiCall<SecretAuditReply> {
    ApiCall::get(["api", "internal", "secret-audit"])
        .with("credential", credential)
        .with("execution_id", execution)
        .with("limit", Some(limit))
}

/// Runs a SQL statement on the control plane's database. Requires a Postgres store.
pub fn sql(request: &SqlRequest) -> ApiCall<SqlReply> {
    ApiCall::post(["api", "postgres", "execute"], request)
}

/// Returns executions with every ID as text, newest start first.
pub fn ehdb_executions(
    status: Option<&str>,
    limit: Option<u64>,
    offset: Option<u64>,
) -> ApiCall<EhdbExecutions> {
    ApiCall::get(["api", "ehdb", "executions"])
        .with("status", status)
        .with("limit", limit)
        .with("offset", offset)
}

/// Returns the state of an execution with every ID as text. An unknown execution is not an error:
/// `exists` is `false`.
pub fn ehdb_execution(id: ExecutionId) -> ApiCall<EhdbState> {
    ApiCall::get(["api", "ehdb", "executions", &id.to_string()])
}

/// Returns events of an execution after the event with ID `after`, oldest first, with every ID as
/// text.
pub fn ehdb_events(id: ExecutionId, after: Option<i64>, limit: Option<u64>) -> ApiCall<EhdbEvents> {
    ApiCall::get(["api", "ehdb", "executions", &id.to_string(), "events"])
        .with("after", after)
        .with("limit", limit)
}

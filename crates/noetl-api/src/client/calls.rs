//! Every call of the control plane that a person or a worker makes, each with its answer's type.

mod access;

use noetl_model::{CommandId, ExecutionId, Value};
use reqwest::StatusCode;

pub use access::{audit_between, create_code, create_grant, grants, remove_grant};

use super::Call;
use crate::approvals::ApprovalList;
use crate::catalog::{
    BatchReply, BatchRequest, CheckReply, CheckRequest, Entry, ListReply, ListRequest,
    RegisterReply, RegisterRequest, ResourceRequest,
};
use crate::commands::{ClaimReply, ClaimRequest, Command};
use crate::credentials::{
    CredentialDeleted, CredentialList, CredentialView, PutCredential, SecretAuditReply,
};
use crate::database::{SqlReply, SqlRequest};
use crate::ehdb::{EhdbEvents, EhdbExecutions, EhdbState};
use crate::events::{EventReply, EventRequest, EventsReply};
use crate::execute::{self, ExecuteReply, ExecuteRequest};
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
    DeadLetterReply, DeadLetterRequest, LeaseReply, LeaseRequest, ReleaseRequest, SubscribeRequest,
    SubscriptionEvents, SubscriptionList, SubscriptionStatus,
};
use crate::tokens::{MadeToken, NewToken, TokenList, TokenRevoked, Whoami};
use crate::why::WhyReply;
use crate::workers::RuntimeView;

/// Whether the control plane is well. One that says it is not is an answer, not a refusal.
pub fn health() -> Call<Health> {
    Call::get(["api", "health"]).also(StatusCode::SERVICE_UNAVAILABLE)
}

/// Who the caller is, and what the caller may do.
pub fn whoami() -> Call<Whoami> {
    Call::get(["api", "whoami"])
}

/// Registers a document; one with errors too when `force` is given.
pub fn register(request: &RegisterRequest, force: bool) -> Call<RegisterReply> {
    Call::post(["api", "catalog", "register"], request).with("force", force.then_some("true"))
}

/// Registers several documents, one after the other.
pub fn register_batch(request: &BatchRequest, force: bool) -> Call<BatchReply> {
    Call::post(["api", "catalog", "register", "batch"], request)
        .with("force", force.then_some("true"))
}

/// Looks at a document without keeping it.
pub fn validate(request: &CheckRequest) -> Call<CheckReply> {
    Call::post(["api", "catalog", "validate"], request)
}

/// Documents of a kind, or all.
pub fn documents(kind: Option<&str>) -> Call<ListReply> {
    let request = ListRequest { resource_type: kind.map(str::to_owned) };
    Call::post(["api", "catalog", "list"], &request)
}

/// One document.
pub fn document(request: &ResourceRequest) -> Call<Entry> {
    Call::post(["api", "catalog", "resource"], request)
}

/// Starts an execution.
pub fn execute(request: &ExecuteRequest) -> Call<ExecuteReply> {
    Call::post(["api", "execute"], request)
}

/// Starts several executions.
pub fn execute_batch(request: &execute::BatchRequest) -> Call<execute::BatchReply> {
    Call::post(["api", "execute", "batch"], request)
}

/// Which executions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    pub status: Option<String>,
    /// With this in their path.
    pub path: Option<String>,
    /// Started by this execution.
    pub parent: Option<ExecutionId>,
    /// At most so many.
    pub limit: Option<u64>,
    /// After so many.
    pub offset: Option<u64>,
}

/// Executions, newest start first.
pub fn executions(which: &Which) -> Call<Vec<ExecutionView>> {
    Call::get(["api", "executions"])
        .with("status", which.status.as_ref())
        .with("path", which.path.as_ref())
        .with("parent_execution_id", which.parent)
        .with("limit", which.limit)
        .with("offset", which.offset)
}

/// One execution with the newest part of its log.
pub fn execution(id: ExecutionId) -> Call<ExecutionDetail> {
    Call::get(["api", "executions", &id.to_string()])
}

/// How one execution stands.
pub fn status(id: ExecutionId) -> Call<StatusReply> {
    Call::get(["api", "executions", &id.to_string(), "status"])
}

/// A stretch of a log after a place in it, oldest first.
pub fn events(id: ExecutionId, after: u64, limit: Option<usize>) -> Call<EventsReply> {
    Call::get(["api", "executions", &id.to_string(), "events"])
        .with("after", Some(after))
        .with("limit", limit)
}

/// A log as it grows; see [`Client::follow`](super::Client::follow).
pub fn stream(id: ExecutionId) -> Call<()> {
    Call::get(["api", "executions", &id.to_string(), "stream"])
}

/// What steps printed, after a line.
pub fn logs(
    id: ExecutionId,
    command: Option<&str>,
    after: u64,
    limit: Option<u64>,
) -> Call<LogReply> {
    Call::get(["api", "executions", &id.to_string(), "logs"])
        .with("command", command)
        .with("after", Some(after))
        .with("limit", limit)
}

/// What steps print, as they do; see [`Client::follow`](super::Client::follow).
pub fn log_stream(id: ExecutionId, command: Option<&str>) -> Call<()> {
    Call::get(["api", "executions", &id.to_string(), "logs"])
        .with("command", command)
        .with("follow", Some("true"))
}

/// Why an execution stands as it does.
pub fn why(id: ExecutionId) -> Call<WhyReply> {
    Call::get(["api", "executions", &id.to_string(), "why"])
}

/// What a log says up to some event or time.
pub fn replay(query: &ReplayQuery) -> Call<Value> {
    Call::get(["api", "replay", "state"])
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

/// Stops an execution.
pub fn cancel(id: ExecutionId, request: &CancelRequest) -> Call<CancelReply> {
    Call::post(["api", "executions", &id.to_string(), "cancel"], request)
}

/// Steps that wait for a person.
pub fn approvals(limit: usize) -> Call<ApprovalList> {
    Call::get(["api", "approvals"]).with("limit", Some(limit))
}

/// Gives a step the answer it waits for.
pub fn answer(id: ExecutionId, command: CommandId, request: &AnswerRequest) -> Call<AnswerReply> {
    Call::post(["api", "executions", &id.to_string(), "answers", &command.to_string()], request)
}

/// Starts an execution with the past of another.
pub fn fork(id: ExecutionId, request: &ForkRequest) -> Call<ForkReply> {
    Call::post(["api", "executions", &id.to_string(), "fork"], request)
}

/// Starts an execution that does again what failed in another.
pub fn retry(id: ExecutionId, request: &RetryRequest) -> Call<ForkReply> {
    Call::post(["api", "executions", &id.to_string(), "retry"], request)
}

/// Starts an execution with the workload of another.
pub fn rerun(id: ExecutionId, request: &RerunRequest) -> Call<ExecuteReply> {
    Call::post(["api", "executions", &id.to_string(), "rerun"], request)
}

/// Stops what has run for long.
pub fn cleanup(request: &CleanupRequest) -> Call<CleanupReply> {
    Call::post(["api", "executions", "cleanup"], request)
}

/// Says something about an execution, as a worker does.
pub fn report(event: &EventRequest) -> Call<EventReply> {
    Call::post(["api", "events"], event)
}

/// One command.
pub fn command(id: CommandId) -> Call<Command> {
    Call::get(["api", "commands", &id.to_string()])
}

/// Takes a command for a worker that knows our words.
pub fn claim(id: CommandId, worker_id: &str) -> Call<ClaimReply> {
    let dialect = Some("native".to_owned());
    let request = ClaimRequest { worker_id: worker_id.to_owned(), dialect };
    Call::post(["api", "commands", &id.to_string(), "claim"], &request)
}

/// Keeps a credential in the place of any that has its name.
pub fn put_credential(request: &PutCredential) -> Call<CredentialView> {
    Call::post(["api", "credentials"], request)
}

/// Credentials, without what is secret.
pub fn credentials(kind: Option<&str>, q: Option<&str>) -> Call<CredentialList> {
    Call::get(["api", "credentials"]).with("type", kind).with("q", q)
}

/// One credential, by name or id.
pub fn credential(name: &str, include_data: bool) -> Call<CredentialView> {
    Call::get(["api", "credentials", name]).with("include_data", Some(include_data))
}

/// Removes a credential, by name or id.
pub fn delete_credential(name: &str) -> Call<CredentialDeleted> {
    Call::delete(["api", "credentials", name])
}

/// Registers a subscription whose document is in the catalog.
pub fn subscribe(path: &str) -> Call<SubscriptionStatus> {
    let request = SubscribeRequest { path: path.to_owned() };
    Call::post(["api", "subscriptions"], &request)
}

/// All subscriptions.
pub fn subscriptions() -> Call<SubscriptionList> {
    Call::get(["api", "subscriptions"])
}

/// One subscription.
pub fn subscription(id: i64) -> Call<SubscriptionStatus> {
    Call::get(["api", "subscriptions", &id.to_string()])
}

/// Moves a subscription: `activate`, `pause`, `resume`, `drain` or `deactivate`.
pub fn move_subscription(id: i64, action: &str) -> Call<SubscriptionStatus> {
    let nothing = serde_json::json!({});
    Call::post(["api", "subscriptions", &id.to_string(), action], &nothing)
}

/// A stretch of a subscription's log after a place in it, oldest first.
pub fn subscription_events(id: i64, after: u64, limit: Option<usize>) -> Call<SubscriptionEvents> {
    Call::get(["api", "subscriptions", &id.to_string(), "events"])
        .with("after", Some(after))
        .with("limit", limit)
}

/// Acts on a subscription as a runtime, or goes on with it.
pub fn lease_subscription(id: i64, request: &LeaseRequest) -> Call<LeaseReply> {
    Call::post(["api", "subscriptions", &id.to_string(), "lease"], request)
}

/// Ends that a runtime acts on a subscription.
pub fn release_subscription(id: i64, holder: &str) -> Call<SubscriptionStatus> {
    let request = ReleaseRequest { holder: holder.to_owned() };
    Call::post(["api", "subscriptions", &id.to_string(), "release"], &request)
}

/// Keeps a message that cannot be dispatched.
pub fn dead_letter(id: i64, request: &DeadLetterRequest) -> Call<DeadLetterReply> {
    Call::post(["api", "subscriptions", &id.to_string(), "dead-letters"], request)
}

/// All schedules.
pub fn schedules() -> Call<ScheduleList> {
    Call::get(["api", "schedules"])
}

/// One schedule.
pub fn schedule(id: i64) -> Call<ScheduleView> {
    Call::get(["api", "schedules", &id.to_string()])
}

/// Makes a schedule.
pub fn create_schedule(request: &ScheduleRequest) -> Call<ScheduleView> {
    Call::post(["api", "schedules"], request)
}

/// Does something to a schedule: `pause` or `resume`.
pub fn act_on_schedule(id: i64, action: &str) -> Call<ScheduleView> {
    let nothing = serde_json::json!({});
    Call::post(["api", "schedules", &id.to_string(), action], &nothing)
}

/// Runs a schedule now.
pub fn run_schedule(id: i64) -> Call<ExecuteReply> {
    let nothing = serde_json::json!({});
    Call::post(["api", "schedules", &id.to_string(), "run"], &nothing)
}

/// Deletes a schedule.
pub fn delete_schedule(id: i64) -> Call<ScheduleDeleted> {
    Call::delete(["api", "schedules", &id.to_string()])
}

/// Workers that registered.
pub fn workers(status: Option<&str>, name: Option<&str>) -> Call<Vec<RuntimeView>> {
    Call::get(["api", "worker", "pools"]).with("status", status).with("name", name)
}

/// Makes a token.
pub fn create_token(request: &NewToken) -> Call<MadeToken> {
    Call::post(["api", "tokens"], request)
}

/// Tokens of the caller's tenant.
pub fn tokens() -> Call<TokenList> {
    Call::get(["api", "tokens"])
}

/// Ends a token.
pub fn revoke_token(id: &str) -> Call<TokenRevoked> {
    Call::delete(["api", "tokens", id])
}

/// Who asked for which secret, latest first.
pub fn audit(
    credential: Option<&str>,
    execution: Option<ExecutionId>,
    limit: usize,
) -> Call<SecretAuditReply> {
    Call::get(["api", "internal", "secret-audit"])
        .with("credential", credential)
        .with("execution_id", execution)
        .with("limit", Some(limit))
}

/// Runs SQL on the database of a control plane that keeps its data in Postgres.
pub fn sql(request: &SqlRequest) -> Call<SqlReply> {
    Call::post(["api", "postgres", "execute"], request)
}

/// Executions, every id as text.
pub fn ehdb_executions(
    status: Option<&str>,
    limit: Option<u64>,
    offset: Option<u64>,
) -> Call<EhdbExecutions> {
    Call::get(["api", "ehdb", "executions"])
        .with("status", status)
        .with("limit", limit)
        .with("offset", offset)
}

/// How one execution stands, every id as text; one that is not there is no refusal.
pub fn ehdb_execution(id: ExecutionId) -> Call<EhdbState> {
    Call::get(["api", "ehdb", "executions", &id.to_string()])
}

/// Events of one execution after another event, oldest first, every id as text.
pub fn ehdb_events(id: ExecutionId, after: Option<i64>, limit: Option<u64>) -> Call<EhdbEvents> {
    Call::get(["api", "ehdb", "executions", &id.to_string(), "events"])
        .with("after", after)
        .with("limit", limit)
}

//! Fuzz target for bodies of requests.

use noetl_api::{
    callbacks, catalog, commands, credentials, database, events, execute, executions, internal,
    keychain, logs, objects, outbox, results, schedules, session, subscriptions, tokens, workers,
};
use noetl_model::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads any bytes as the body of every request.
///
/// What is read is written in one way: written and read again, it is written the same.
pub fn wire(data: &[u8]) {
    for read in BODIES {
        read(data);
    }
}

const BODIES: &[fn(&[u8])] = &[
    body::<callbacks::ContainerCallback>,
    body::<catalog::AgentsRequest>,
    body::<catalog::RegisterBatchRequest>,
    body::<catalog::CheckRequest>,
    body::<catalog::DeleteRequest>,
    body::<catalog::ListRequest>,
    body::<catalog::PutContent>,
    body::<catalog::RegisterRequest>,
    body::<catalog::ResourceRequest>,
    body::<commands::ClaimRequest>,
    body::<commands::Command>,
    body::<credentials::PutCredential>,
    body::<credentials::RotateRequest>,
    body::<database::SqlRequest>,
    body::<events::EventBatchRequest>,
    body::<events::EventRequest>,
    body::<execute::ExecuteRequest>,
    body::<executions::AnswerRequest>,
    body::<executions::CancelRequest>,
    body::<executions::CleanupRequest>,
    body::<executions::FinalizeRequest>,
    body::<executions::ForkRequest>,
    body::<executions::RerunRequest>,
    body::<executions::RetryRequest>,
    body::<internal::AdvanceRequest>,
    body::<keychain::PutKeychain>,
    body::<logs::LogRequest>,
    body::<objects::PutSuite>,
    body::<outbox::ClaimRequest>,
    body::<outbox::FailedRequest>,
    body::<outbox::PublishedRequest>,
    body::<results::PutResult>,
    body::<schedules::ScheduleRequest>,
    body::<session::CodeRequest>,
    body::<session::SessionRequest>,
    body::<subscriptions::DeadLetterRequest>,
    body::<subscriptions::SubscriptionLeaseRequest>,
    body::<subscriptions::ReleaseRequest>,
    body::<subscriptions::SubscribeRequest>,
    body::<tokens::NewToken>,
    body::<workers::HeartbeatRequest>,
    body::<workers::CommandLeaseRequest>,
    body::<workers::RegisterRequest>,
    body::<workers::RuntimeNamed>,
];

fn body<T: DeserializeOwned + Serialize>(data: &[u8]) {
    let Ok(read) = serde_json::from_slice::<T>(data) else { return };
    let name = std::any::type_name::<T>();
    let written = serde_json::to_value(&read).expect("what was read has a JSON form");
    let again: T = match serde_json::from_value(written.clone()) {
        Ok(again) => again,
        Err(error) => panic!("{name}: {error}: {written}"),
    };
    let rewritten: Value = serde_json::to_value(&again).expect("it has one again");
    assert_eq!(rewritten, written, "{name}");
}

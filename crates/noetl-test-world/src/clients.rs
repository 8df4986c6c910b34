//! Clients that start executions, cancel them, and answer approvals.

use std::sync::Arc;
use std::time::Duration;

use noetl_engine::Rejection;
use noetl_journal::{StartRequest, SubmitError};
use noetl_model::{CommandId, Map, SubscriptionId, Tenant};
use noetl_triggers::{DedupKey, DedupStart};

use super::plan::Asked;
use super::scene::Scene;

const TIMEOUT: Duration = Duration::from_secs(15);

/// Starts an execution, repeats the request as planned, and cancels the execution.
pub(crate) async fn run(scene: Arc<Scene>, number: usize, asked: Asked) {
    let who = format!("c{number}");
    tokio::time::sleep(asked.after).await;
    for _ in 0..=asked.repeats {
        retry_until_done(&scene, &who, || start(&scene, number, &asked)).await;
        tokio::time::sleep(scene.millis(0, 3_000)).await;
    }
    if let Some(after) = asked.cancel {
        tokio::time::sleep(after).await;
        scene.lock().cancelled.insert(number);
        retry_until_done(&scene, &who, || cancel(&scene, number)).await;
    }
}

/// Repeats a request until it succeeds.
async fn retry_until_done<F: Future<Output = bool>>(
    scene: &Scene,
    who: &str,
    call: impl Fn() -> F,
) {
    loop {
        if let Ok(true) = tokio::time::timeout(TIMEOUT, call()).await {
            return;
        }
        scene.note(who, "gets no response");
        tokio::time::sleep(scene.millis(50, 4_000)).await;
    }
}

async fn start(scene: &Scene, number: usize, asked: &Asked) -> bool {
    let Some((_, control)) = scene.some_control() else { return false };
    let request = StartRequest {
        path: Some(asked.path.clone()),
        payload: Map::from_iter([("number".to_owned(), number.into())]),
        ..StartRequest::default()
    };
    let once = DedupKey {
        scope: SubscriptionId::new(0),
        key: format!("start-{number}"),
        window: Duration::from_secs(24 * 3600),
        is_noted: true,
    };
    let execution =
        match control.triggers.starts.start_once(&Tenant::default(), request, once).await {
            Ok(DedupStart::New(started)) => started.execution,
            Ok(DedupStart::Duplicate(execution)) => execution,
            Err(error) => {
                scene.note(&format!("c{number}"), &format!("start failed: {error}"));
                return false;
            }
        };
    scene.lock().started.entry(number).or_default().insert(execution);
    true
}

async fn cancel(scene: &Scene, number: usize) -> bool {
    let Some((_, control)) = scene.some_control() else { return false };
    let execution = scene.lock().started.get(&number).and_then(|known| known.first().copied());
    let Some(execution) = execution else { return true };
    match control.journal.executions.cancel(&Tenant::default(), execution, None).await {
        Ok(()) | Err(SubmitError::Refused(Rejection::AlreadyFinished(_))) => true,
        Err(_) => false,
    }
}

/// Answers pending approvals from time to time.
pub(crate) async fn approve(scene: Arc<Scene>) {
    let tenant = Tenant::default();
    loop {
        tokio::time::sleep(scene.millis(1_000, 8_000)).await;
        let Some((_, control)) = scene.some_control() else { continue };
        let asked = control.journal.executions.approvals(&tenant, CommandId::new(0), 10);
        let Ok(Ok(approvals)) = tokio::time::timeout(TIMEOUT, asked).await else { continue };
        for approval in approvals.found {
            let Some((_, control)) = scene.some_control() else { continue };
            let yes = Ok(serde_json::json!({ "go": [true, true, true, true] }));
            let (execution, token) = (approval.execution.id, &*approval.token);
            let answered =
                control.journal.executions.answer(execution, approval.command, token, yes);
            // An approval whose answer is lost stays pending.
            let _ = tokio::time::timeout(TIMEOUT, answered).await;
        }
    }
}

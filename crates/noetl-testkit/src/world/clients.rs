//! Those who start executions, stop them, and answer what they ask.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{Once, StartRequest, StartedOnce, SubmitError};
use noetl_engine::Refusal;
use noetl_model::{CommandId, Map, SubscriptionId, Tenant};

use super::plan::Asked;
use super::scene::Scene;

/// How long a call may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(15);

/// Starts an execution, asks for it again as often as it is told to, and stops it.
pub(crate) async fn run(scene: Arc<Scene>, number: usize, asked: Asked) {
    let who = format!("c{number}");
    tokio::time::sleep(asked.after).await;
    for _ in 0..=asked.repeats {
        until_answered(&scene, &who, || start(&scene, number, &asked)).await;
        tokio::time::sleep(scene.millis(0, 3_000)).await;
    }
    if let Some(after) = asked.cancel {
        tokio::time::sleep(after).await;
        scene.lock().cancelled.insert(number);
        until_answered(&scene, &who, || cancel(&scene, number)).await;
    }
}

/// Does something again until it is answered.
async fn until_answered<F: Future<Output = bool>>(scene: &Scene, who: &str, call: impl Fn() -> F) {
    loop {
        if let Ok(true) = tokio::time::timeout(PATIENCE, call()).await {
            return;
        }
        scene.note(who, "has no answer");
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
    let once = Once {
        scope: SubscriptionId::new(0),
        key: format!("start-{number}"),
        window: Duration::from_secs(24 * 3600),
    };
    let execution = match control.starts.once(&Tenant::default(), request, once).await {
        Ok(StartedOnce::New(started)) => started.execution,
        Ok(StartedOnce::Duplicate(execution)) => execution,
        Err(error) => {
            scene.note(&format!("c{number}"), &format!("is not served: {error}"));
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
    match control.executions.cancel(&Tenant::default(), execution, None).await {
        Ok(()) | Err(SubmitError::Refused(Refusal::AlreadyFinished(_))) => true,
        Err(_) => false,
    }
}

/// Answers whatever asks for a person, now and then.
pub(crate) async fn approve(scene: Arc<Scene>) {
    let tenant = Tenant::default();
    loop {
        tokio::time::sleep(scene.millis(1_000, 8_000)).await;
        let Some((_, control)) = scene.some_control() else { continue };
        let asked = control.executions.approvals(&tenant, CommandId::new(0), 10);
        let Ok(Ok(approvals)) = tokio::time::timeout(PATIENCE, asked).await else { continue };
        for approval in approvals.found {
            let Some((_, control)) = scene.some_control() else { continue };
            let yes = Ok(serde_json::json!({ "go": [true, true, true, true] }));
            let (execution, token) = (approval.execution.id, &*approval.token);
            let answered = control.executions.answer(execution, approval.command, token, yes);
            // Without an answer it is found again.
            let _ = tokio::time::timeout(PATIENCE, answered).await;
        }
    }
}

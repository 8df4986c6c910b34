use std::sync::Arc;

use noetl_model::{ExecutionId, Timestamp};
use noetl_store::conformance::story::{Story, completed, done, imported, issued, said, write};
use noetl_store::{ExecutionStatus, RetentionPolicy, RetentionStore, RetentionWindow};
use noetl_test_app::FaultyStore;
use noetl_views::{VerifyReport, verify};

use crate::plane::{Gate, TestPlane, chain};

async fn all(store: &FaultyStore) -> VerifyReport {
    verify(store, ExecutionId::new(i64::MIN), 100).await.unwrap()
}

async fn messages(store: &FaultyStore) -> Vec<String> {
    all(store).await.problems.into_iter().map(|problem| problem.message).collect()
}

#[tokio::test(start_paused = true)]
async fn logs_of_the_journal_pass_verification() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    let ended = plane.start(&chain(5)).await;
    plane.finished(ended).await;
    let running = plane.start("  - {step: a, tool: {kind: shell, command: x}}\n").await;
    gate.begun(1).await;
    let verified = all(&store).await;
    assert_eq!((verified.executions, verified.last), (2, Some(ended.max(running))));
    assert!(verified.events > 5);
    assert_eq!(verified.problems, []);
    plane.close().await;
}

#[tokio::test]
async fn executions_are_checked_in_pages() {
    let store = FaultyStore::default();
    for id in [10, 11, 12] {
        write(&store, Story::new(id).start()).await;
    }
    let page = verify(&store, ExecutionId::new(10), 1).await.unwrap();
    assert_eq!((page.executions, page.last), (1, Some(ExecutionId::new(11))));
    let end = verify(&store, ExecutionId::new(12), 1).await.unwrap();
    assert_eq!(end, VerifyReport::default());
}

#[tokio::test]
async fn a_finished_row_of_an_unfinished_log_is_reported() {
    let store = FaultyStore::default();
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    story.row.status = ExecutionStatus::Failed;
    story.row.ended_at = Some(Timestamp::from_micros(1));
    write(&store, story.then(vec![said("more")])).await;
    let command = story.command_at(3);
    assert_eq!(
        messages(&store).await,
        [
            "its row says FAILED, and its log RUNNING".to_owned(),
            format!("it ended, and its command {command} is open"),
        ]
    );
}

#[tokio::test]
async fn a_status_that_differs_between_row_and_log_is_reported() {
    let store = FaultyStore::default();
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    let mut end = story.then(vec![completed(story.command_at(3)), done()]);
    end.row.ended_at = Some(Timestamp::from_micros(1));
    write(&store, end).await;
    assert_eq!(messages(&store).await, ["its row and its log differ on when it ended"]);
}

#[tokio::test]
async fn purged_rows_are_not_reported_as_missing() {
    let store = FaultyStore::default();
    let mut ended = Story::new(10);
    write(&store, ended.start()).await;
    write(&store, ended.then(vec![completed(ended.command_at(3)), done()])).await;
    write(&store, Story::new(11).then(vec![imported(), issued("a")])).await;
    let policy = RetentionPolicy {
        commands: RetentionWindow::days("days", 1).unwrap(),
        ..RetentionPolicy::KEEP
    };
    assert_eq!(store.purge(&policy, false).await.unwrap().removed.commands, 1);
    assert_eq!(messages(&store).await, [] as [&str; 0]);
}

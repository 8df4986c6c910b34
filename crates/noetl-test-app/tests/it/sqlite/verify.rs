//! `verify` finds damage in the file that no store method can cause.

use noetl_model::ExecutionId;
use noetl_model::row::EventRow;
use noetl_store::conformance::story::{Story, completed, done, said, write};
use noetl_store_sqlite::SqliteStore;
use noetl_views::verify;
use rusqlite::Connection;

use crate::sqlite::edit::edit_log;
use crate::sqlite::temporary;

/// Returns damage that this SQL causes.
fn sql(sql: &str) -> impl FnOnce(&Connection) {
    move |file| file.execute_batch(sql).expect("a change")
}

/// Writes a finished and a running execution, damages the file, and returns the problems found.
async fn problems_after(damage: impl FnOnce(&Connection)) -> Vec<(i64, String)> {
    let (store, directory) = temporary();
    let path = directory.path().join("noetl.db");
    let (mut ended, mut runs) = (Story::new(10), Story::new(11));
    write(&store, ended.start()).await;
    write(&store, ended.then(vec![completed(ended.command_at(3)), done()])).await;
    write(&store, runs.start()).await;
    write(&store, runs.then(vec![said("a"), said("b"), said("c")])).await;
    store.close().await;
    let file = Connection::open(&path).expect("the file");
    damage(&file);
    file.close().expect("a closed file");
    let store = SqliteStore::look_at(path).expect("a look");
    let verified = verify(&store, ExecutionId::new(i64::MIN), 10).await.expect("a look at all");
    let problems = verified.problems.into_iter();
    problems.map(|problem| (problem.execution.get(), problem.message)).collect()
}

#[tokio::test]
async fn an_intact_database_has_no_problems() {
    assert_eq!(problems_after(|_| ()).await, []);
}

#[tokio::test]
async fn a_gap_in_a_log_is_reported() {
    let problems =
        problems_after(|file| edit_log(file, 11, |rows| rows.retain(|row| row.seq.0 != 5)));
    assert_eq!(problems.await, [(11, "the log goes from place 4 to 6".to_owned())]);
    let problems =
        problems_after(sql("delete from event_append where execution_id = 11 and first_seq = 4"));
    let (problems, short) = (problems.await, "its row is at version 6, and its log ends at 3");
    assert!(problems.contains(&(11, short.to_owned())), "{problems:?}");
}

#[tokio::test]
async fn an_unreadable_append_is_reported() {
    let damage = "update event_append set body = '[' where execution_id = 11 and first_seq = 4";
    let problems = problems_after(sql(damage)).await;
    let is_named = |(execution, message): &(i64, String)| {
        *execution == 11 && message.contains("the append at event 4 is not readable")
    };
    assert!(problems.iter().any(is_named), "{problems:?}");
}

#[tokio::test]
async fn a_log_without_its_last_event_is_reported() {
    let problems =
        problems_after(|file| edit_log(file, 10, |rows| rows.retain(|row| row.seq.0 != 5)));
    let problems = problems.await;
    let wrong = [
        "its row is at version 5, and its log ends at 4",
        "its row says COMPLETED, and its log RUNNING",
    ];
    assert_eq!(problems, wrong.map(|text| (10, text.to_owned())));
}

#[tokio::test]
async fn a_second_terminal_event_is_reported() {
    let problems = problems_after(|file| {
        edit_log(file, 10, |rows| {
            let (seq, event_id) = (rows[3].seq, rows[3].event_id);
            rows[3] = EventRow { seq, event_id, ..rows[4].clone() };
        });
        sql("delete from command where execution_id = 10")(file);
    });
    let problems = problems.await;
    assert!(problems.contains(&(10, "it ended 2 times".to_owned())), "{problems:?}");
}

#[tokio::test]
async fn an_open_row_of_a_completed_command_is_reported() {
    let pending = "update command set state = 'PENDING', worker_id = null, ended_at = null
        where execution_id = 10";
    let problems = problems_after(sql(pending)).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].1.ends_with("is PENDING and differs from the log, COMPLETED"),
        "{problems:?}"
    );
}

#[tokio::test]
async fn a_missing_command_row_of_a_running_execution_is_reported() {
    let problems = problems_after(sql("delete from command where execution_id = 11")).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].1.ends_with("has no row"), "{problems:?}");
}

#[tokio::test]
async fn a_store_opened_for_inspection_rejects_changes() {
    let (store, directory) = temporary();
    write(&store, Story::new(10).start()).await;
    // Beside the process that owns the file.
    let look = SqliteStore::look_at(directory.path().join("noetl.db")).expect("a look");
    let verified = verify(&look, ExecutionId::new(i64::MIN), 10).await.expect("a look at all");
    assert_eq!((verified.executions, verified.problems), (1, vec![]));
    use noetl_store::EventLog;
    look.commit(vec![Story::new(11).start()]).await.expect_err("not its file");
    assert_eq!(look.check().await.expect("a check"), [] as [&str; 0]);
    write(&store, Story::new(12).start()).await;
}

//! Cases about command rows: they follow from the events, and only move to later stages.

use std::sync::Arc;

use noetl_model::{CommandId, CommandState};

use super::story::{
    Story, began, claimed, commit, completed, expired, failed, issued, stopped, write,
};
use crate::{CommandRow, Committed, Store};

pub async fn an_issued_command_is_pending(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    let start = story.start();
    let issued_at = start.events[2].at;
    write(&*store, start).await;
    let row = command(&*store, story.command_at(3)).await;
    assert_eq!(
        row,
        CommandRow {
            id: story.command_at(3),
            execution: story.id(),
            issued: noetl_model::Seq(3),
            step: Arc::from("a"),
            tool: Arc::from("python"),
            attempt: 2,
            pool: Arc::from("shared"),
            limit_ms: Some(1500),
            state: CommandState::Pending,
            worker: None,
            issued_at,
            ended_at: None,
        }
    );
    assert_eq!(open(&*store).await, [row]);
    assert_eq!(waiting(&*store).await, 1);
    write(&*store, story.then(vec![claimed(story.command_at(3), "w")])).await;
    assert_eq!(waiting(&*store).await, 0, "it has a worker");
}

pub async fn a_command_issued_and_claimed_in_one_append_is_claimed(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let id = story.command_at(4);
    write(&*store, story.then(vec![issued("b"), claimed(id, "worker-1")])).await;
    let row = command(&*store, id).await;
    assert_eq!(row.state, CommandState::Claimed);
    assert_eq!(row.worker.as_deref(), Some("worker-1"));
    assert_eq!(row.ended_at, None);
}

pub async fn a_command_is_claimed_started_and_completed(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let id = story.command_at(3);
    let way = [
        (claimed(id, "worker-1"), CommandState::Claimed),
        (began(id, "worker-1"), CommandState::Running),
        (completed(id), CommandState::Completed),
    ];
    for (fact, state) in way {
        write(&*store, story.then(vec![fact])).await;
        let row = command(&*store, id).await;
        assert_eq!(row.state, state);
        assert_eq!(row.worker.as_deref(), Some("worker-1"));
        let ended_at = state.is_terminal().then_some(story.row.updated_at);
        assert_eq!(row.ended_at, ended_at);
    }
    assert_eq!(open(&*store).await, []);
}

pub async fn a_command_can_fail_expire_or_be_cancelled(store: Arc<dyn Store>) {
    for number in 0..3_u8 {
        let mut story = Story::new(10 + i64::from(number));
        write(&*store, story.start()).await;
        let id = story.command_at(3);
        let (end, state) = match number {
            0 => (failed(id), CommandState::Failed),
            1 => (expired(id), CommandState::Expired),
            _ => (stopped(id), CommandState::Cancelled),
        };
        write(&*store, story.then(vec![end])).await;
        let row = command(&*store, id).await;
        assert_eq!(row.state, state);
        assert_eq!(row.worker, None, "nobody ever held it");
        assert_eq!(row.ended_at, Some(story.row.updated_at));
    }
    assert_eq!(open(&*store).await, []);
}

pub async fn a_terminal_command_never_moves_again(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let id = story.command_at(3);
    write(&*store, story.then(vec![claimed(id, "worker-1")])).await;
    write(&*store, story.then(vec![expired(id)])).await;
    let ended = command(&*store, id).await;
    for late in
        [claimed(id, "worker-2"), began(id, "worker-2"), completed(id), failed(id), stopped(id)]
    {
        write(&*store, story.then(vec![late])).await;
        assert_eq!(command(&*store, id).await, ended);
    }
    assert_eq!(open(&*store).await, []);
}

pub async fn a_terminal_command_never_moves_again_in_one_append(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let old = story.command_at(3);
    let new = story.command_at(7);
    let facts = vec![
        expired(old),
        claimed(old, "worker-2"),
        completed(old),
        issued("b"),
        stopped(new),
        claimed(new, "worker-2"),
    ];
    write(&*store, story.then(facts)).await;
    let row = command(&*store, old).await;
    assert_eq!((row.state, row.worker), (CommandState::Expired, None));
    let row = command(&*store, new).await;
    assert_eq!((row.state, row.worker), (CommandState::Cancelled, None));
}

pub async fn a_claim_after_the_start_changes_nothing(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let id = story.command_at(3);
    write(&*store, story.then(vec![began(id, "worker-1")])).await;
    write(&*store, story.then(vec![claimed(id, "worker-2")])).await;
    let row = command(&*store, id).await;
    assert_eq!(row.state, CommandState::Running);
    assert_eq!(row.worker.as_deref(), Some("worker-1"));
}

pub async fn a_change_of_an_unknown_command_changes_nothing(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let unknown = CommandId::new(4);
    write(&*store, story.then(vec![completed(unknown)])).await;
    assert_eq!(store.command(unknown).await.expect("a read"), None);
}

pub async fn commands_of_a_rejected_append_do_not_exist(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    let mut late = story.clone();
    write(&*store, story.then(vec![claimed(story.command_at(3), "w")])).await;
    let refused = late.then(vec![completed(late.command_at(3)), issued("b")]);
    let outcome = commit(&*store, refused).await;
    assert!(matches!(outcome, Committed::Conflict { .. }));
    let held = command(&*store, story.command_at(3)).await;
    assert_eq!(held.state, CommandState::Claimed);
    let never = store.command(late.command_at(5)).await.expect("a read");
    assert_eq!(never, None);
}

pub async fn open_commands_are_listed_in_pages_oldest_first(store: Arc<dyn Store>) {
    let mut stories: Vec<Story> = [14, 10, 12, 11, 13].map(Story::new).into();
    for story in &mut stories {
        write(&*store, story.start()).await;
    }
    let ended = stories[2].command_at(3);
    write(&*store, stories[2].then(vec![completed(ended)])).await;
    let mut seen = Vec::new();
    let mut after = CommandId::new(i64::MIN);
    loop {
        let page = store.open_commands(after, 2).await.expect("a page");
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = last.id;
        seen.extend(page.iter().map(|row| row.execution.get()));
    }
    assert_eq!(seen, [10, 11, 13, 14]);
    let none = store.open_commands(CommandId::new(0), 0).await;
    assert_eq!(none.expect("a page"), []);
}

async fn command(store: &dyn Store, id: CommandId) -> CommandRow {
    let row = store.command(id).await.expect("a read");
    row.expect("a command")
}

async fn open(store: &dyn Store) -> Vec<CommandRow> {
    let open = store.open_commands(CommandId::new(0), 100).await;
    open.expect("a read")
}

async fn waiting(store: &dyn Store) -> u64 {
    let pools = store.pending_by_pool().await.expect("counts");
    pools.iter().map(|(_, count)| count).sum()
}

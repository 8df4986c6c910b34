use std::sync::Arc;

use noetl_model::{CommandId, ExecutionId, Timestamp};

use super::retention::days_of_executions;
use super::story::{Story, done, write};
use crate::step_logs::{HEAD_BYTES, LINE_BYTES_MAX, LINE_COST, TAIL_BYTES};
use crate::{LogGap, LogQuery, LogStream, NewLine, SkippedLines, Store};

fn line(command: i64, text: &str) -> NewLine {
    NewLine {
        command: CommandId::new(command),
        at: Timestamp::from_micros(1_704_067_200_000_007),
        stream: if text.starts_with('!') { LogStream::Err } else { LogStream::Out },
        text: text.to_owned(),
    }
}

async fn append(store: &dyn Store, execution: i64, lines: Vec<NewLine>) -> Option<u64> {
    store.append_lines(ExecutionId::new(execution), lines).await.expect("an append")
}

async fn read(store: &dyn Store, command: Option<i64>, after: u64, limit: usize) -> Vec<u64> {
    let query = LogQuery { command: command.map(CommandId::new), after, limit };
    let found = store.lines(ExecutionId::new(10), query).await.expect("a read");
    found.into_iter().map(|line| line.n).collect()
}

pub async fn lines_are_read_back_in_order_and_by_command(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let all = vec![line(1, "one"), line(2, "!two"), line(1, ""), line(1, "drei ✓ 'x' \\")];
    assert_eq!(append(&*store, 10, all[..2].to_vec()).await, Some(2));
    assert_eq!(append(&*store, 10, all[2..].to_vec()).await, Some(4));
    assert_eq!(append(&*store, 10, Vec::new()).await, Some(4));
    let query = LogQuery { limit: 10, ..LogQuery::default() };
    let found = store.lines(ExecutionId::new(10), query).await.expect("a read");
    let (numbers, lines): (Vec<u64>, Vec<NewLine>) =
        found.into_iter().map(|line| (line.n, line.line)).unzip();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(lines, all);
    assert_eq!(read(&*store, Some(1), 0, 2).await, [1, 3]);
    assert_eq!(read(&*store, Some(1), 1, 10).await, [3, 4]);
    assert_eq!(read(&*store, None, 3, 10).await, [4]);
    assert_eq!(read(&*store, None, u64::MAX, 10).await, Vec::<u64>::new());
    assert_eq!(read(&*store, Some(3), 0, 10).await, Vec::<u64>::new());
    assert_eq!(store.gaps(ExecutionId::new(10), None).await.expect("a read"), []);
}

pub async fn lines_of_an_unknown_execution_are_dropped(store: Arc<dyn Store>) {
    assert_eq!(append(&*store, 10, vec![line(1, "one")]).await, None);
    assert_eq!(read(&*store, None, 0, 10).await, Vec::<u64>::new());
}

pub async fn the_first_and_the_newest_lines_of_a_command_stay(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let text = "x".repeat(LINE_BYTES_MAX);
    let cost = LINE_COST + LINE_BYTES_MAX as u64;
    let in_head = HEAD_BYTES / cost;
    let in_tail = TAIL_BYTES / cost;
    let many = in_head + in_tail + 40;
    append(&*store, 10, vec![line(2, "another's")]).await;
    for _ in 0..many / 8 {
        append(&*store, 10, vec![line(1, &text); 8]).await;
    }
    append(&*store, 10, vec![line(1, "last"), line(2, "another's")]).await;
    let printed = many / 8 * 8 + 1;
    let kept = read(&*store, Some(1), 0, usize::MAX).await;
    let gaps = store.gaps(ExecutionId::new(10), Some(CommandId::new(1))).await.expect("a read");
    assert_eq!(gaps.len(), 1);
    let gap = gaps[0];
    assert_eq!(gap.lines + kept.len() as u64, printed, "each is kept or counted");
    assert_eq!(gap.bytes, gap.lines * cost);
    assert_eq!(gap.after, in_head + 1, "the first lines stay");
    assert_eq!(kept[..3], [2, 3, 4]);
    assert_eq!(kept.last(), Some(&(printed + 1)), "so do the newest");
    let tail = kept.iter().filter(|n| **n > gap.after).count() as u64;
    assert!((in_tail / 2..=in_tail).contains(&tail), "{tail} of {in_tail}");
    assert_eq!(read(&*store, Some(2), 0, 10).await.len(), 2, "another's stay");
}

pub async fn lost_lines_count_as_dropped(store: Arc<dyn Store>) {
    let lost =
        |command, lines, bytes| SkippedLines { command: CommandId::new(command), lines, bytes };
    let id = ExecutionId::new(10);
    let count = async |lost| store.pass_over_lines(id, lost).await.expect("a write");
    assert!(!count(vec![lost(1, 3, 300)]).await, "execution not found");
    write(&*store, Story::new(10).start()).await;
    append(&*store, 10, vec![line(1, "one"), line(2, "two")]).await;
    assert!(count(vec![lost(1, 3, 300), lost(3, 1, 70)]).await);
    assert!(count(vec![lost(1, 2, 200)]).await);
    assert_eq!(append(&*store, 10, vec![line(1, "later")]).await, Some(9), "numbers go on");
    let gap = |command, after, lines, bytes| LogGap {
        command: CommandId::new(command),
        after,
        lines,
        bytes,
    };
    let gaps = store.gaps(id, None).await.expect("a read");
    assert_eq!(gaps, [gap(1, 1, 5, 500), gap(3, 0, 1, 70)]);
    assert_eq!(read(&*store, None, 0, 10).await, [1, 2, 9], "what is kept stays");
    assert!(count(Vec::new()).await);
}

pub async fn concurrent_appends_share_no_number(store: Arc<dyn Store>) {
    write(&*store, Story::new(10).start()).await;
    let appends = (0..20).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { append(&*store, 10, vec![line(n % 3, "x"); 3]).await })
    });
    let mut last: Vec<u64> = Vec::new();
    for append in appends.collect::<Vec<_>>() {
        last.push(append.await.expect("no panic").expect("an execution"));
    }
    last.sort_unstable();
    assert_eq!(last, (1..=20).map(|n| n * 3).collect::<Vec<u64>>());
    assert_eq!(read(&*store, None, 0, 100).await, (1..=60).collect::<Vec<u64>>());
}

pub async fn lines_are_purged_with_their_execution(store: Arc<dyn Store>) {
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, Story::new(11).start()).await;
    write(&*store, story.then(vec![done()])).await;
    append(&*store, 10, vec![line(1, "one"), line(2, "two")]).await;
    append(&*store, 11, vec![line(3, "stays")]).await;
    let policy = days_of_executions();
    for dry_run in [true, false] {
        let report = store.purge(&policy, dry_run).await.expect("a purge");
        assert_eq!((report.removed.executions, report.removed.lines), (1, 2), "dry: {dry_run}");
    }
    assert_eq!(read(&*store, None, 0, 10).await, Vec::<u64>::new());
    let query = LogQuery { limit: 10, ..LogQuery::default() };
    assert_eq!(store.lines(ExecutionId::new(11), query).await.expect("a read").len(), 1);
    assert_eq!(append(&*store, 10, vec![line(1, "late")]).await, None, "it does not exist");
}

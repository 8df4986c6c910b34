//! Encodes appends as the parallel arrays that the database function takes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::row::EventRow;
use noetl_model::{CommandId, CommandState, EventId, ExecutionId, Seq, Tenant, TimerId};
use noetl_store::command_leases::{HELD_MAX, TIMEOUT_GRACE};
use noetl_store::outbox::CODEC;
use noetl_store::{
    Append, CommandChange, Committed, Digest, ExecutionRow, Malformed, NewTimer, StartAppend,
};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres, Row};

use crate::column::{PgTimestamptz, interval};

/// Binds one array per column, collected over all rows.
macro_rules! columns {
    ($query:expr, $over:expr, |$each:pat_param| $($column:expr),+ $(,)?) => {
        $query$(.bind($over.clone().map(|$each| $column).collect::<Vec<_>>()))+
    };
}

mod appends;
mod commands;

use self::appends::bind_appends;
pub(crate) use self::appends::{EncodedEvents, events_of};
use self::commands::{bind_inserts, bind_moves, bind_releases, inserted};

/// An append, checked and encoded by its caller. The writer is the bottleneck and does no work that
/// can be done without the database.
#[derive(Debug)]
pub(crate) struct EncodedAppend {
    pub(crate) expected: i64,
    /// ID of the event at `expected`.
    pub(crate) after: Option<EventId>,
    /// ID of the last appended event.
    pub(crate) last: Option<EventId>,
    pub(crate) start: Option<StartAppend>,
    pub(crate) row: ExecutionRow,
    pub(crate) terminal: Option<EventId>,
    pub(crate) appended: EncodedEvents,
    /// The events one by one, for the outbox. Empty if the outbox is disabled.
    pub(crate) events: Vec<EventRow>,
    pub(crate) changes: Vec<CommandChange>,
    pub(crate) leases: Vec<(CommandId, Duration)>,
    pub(crate) due: Vec<NewTimer>,
    pub(crate) delivered: Vec<TimerId>,
    pub(crate) blobs: Vec<Digest>,
}

impl EncodedAppend {
    pub(crate) fn encode(append: Append, has_outbox: bool) -> Result<Self, Malformed> {
        append.check()?;
        let Append { expected, after, start, events, row, leases, commands, due, delivered, blobs } =
            append;
        let mut rows: Vec<EventRow> =
            events.iter().map(|event| EventRow::from(event.as_ref())).collect();
        let appended = EncodedEvents::encode(&rows);
        if !has_outbox {
            rows = Vec::new();
        }
        Ok(Self {
            expected: stored_seq(expected),
            after,
            last: events.last().map(|event| event.id),
            start,
            row,
            terminal: events.iter().find(|event| event.fact.is_end()).map(|event| event.id),
            changes: commands,
            leases,
            appended,
            events: rows,
            due,
            delivered,
            blobs,
        })
    }

    /// Returns the IDs of the timers that the append adds or removes.
    pub(crate) fn due_ids(&self) -> impl Iterator<Item = TimerId> {
        self.due.iter().map(|row| row.id).chain(self.delivered.iter().copied())
    }

    pub(crate) fn execution(&self) -> i64 {
        self.row.id.get()
    }
}

/// Converts a sequence number to its stored form. Numbers beyond `i64::MAX` don't occur in a log;
/// as the start of a read they are past every event.
pub(crate) fn stored_seq(seq: noetl_model::Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

/// Limits a sequence number or a row count, so that the database can add two of them.
pub(crate) fn bounded(number: i64) -> i64 {
    number.min(1 << 60)
}

/// Converts a row count to a `bigint` for `limit` and similar clauses.
pub(crate) fn rows(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Replaces NUL characters, which a Postgres text can't contain. Only malicious input contains one,
/// and it must not prevent a batch from being committed.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Appends of one execution in one statement, each of which follows the previous one.
pub(crate) type AppendChain<'a> = Vec<&'a EncodedAppend>;

/// An event to write to the outbox.
#[derive(Debug)]
pub(crate) struct OutboxEvent {
    pub(crate) execution: ExecutionId,
    pub(crate) event: EventId,
    pub(crate) tenant: Tenant,
    pub(crate) subject: String,
    pub(crate) body: String,
}

/// Outcome of a chain that was not appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RejectedChain {
    pub(crate) execution: i64,
    pub(crate) outcome: i16,
    pub(crate) found: i64,
}

impl RejectedChain {
    pub(crate) fn outcome(&self) -> Committed {
        match self.outcome {
            1 => Committed::Repeated,
            2 => Committed::Taken,
            _ => Committed::Conflict { found: Seq(self.found.unsigned_abs()) },
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct AppenderConfig {
    /// Commit lane of this process.
    pub(crate) lane: i16,
    /// Notification payload for an append that leaves pending commands.
    pub(crate) work_left: Arc<str>,
    /// Whether a transaction-pooling proxy is in between. The driver sends a statement in two
    /// messages, which such a proxy may route to different connections. Statements then are unnamed
    /// and run in a transaction.
    pub(crate) is_pooled: bool,
}

fn leaves_work(chains: &[AppendChain<'_>]) -> bool {
    let mut changes = chains.iter().flatten().flat_map(|item| &item.changes);
    changes.any(|change| inserted(change).is_some_and(|row| row.state == CommandState::Pending))
}

/// Appends chains of different executions and their outbox rows in one statement. Returns the
/// outcomes of the chains that were not appended.
pub(crate) async fn append(
    connection: &mut PgConnection,
    speaker: &AppenderConfig,
    chains: &[AppendChain<'_>],
    outgoing: &[OutboxEvent],
) -> Result<Vec<RejectedChain>, sqlx::Error> {
    let sql = include_str!("../queries/journal_append.sql");
    let word = leaves_work(chains).then(|| speaker.work_left.clone());
    let query = sqlx::query(sql).persistent(!speaker.is_pooled).bind(speaker.lane).bind(word);
    let query = query.bind(interval(HELD_MAX)).bind(interval(TIMEOUT_GRACE));
    let query = bind_items(query, chains);
    let query = bind_appends(query, chains);
    let query = bind_inserts(query, chains);
    let query = bind_moves(query, chains);
    let query = bind_releases(query, chains);
    let query = bind_due(query, chains);
    let query = bind_outgoing(query, outgoing);
    let query = bind_blobs(query, chains);
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(not_kept).collect()
}

fn not_kept(row: &PgRow) -> Result<RejectedChain, sqlx::Error> {
    Ok(RejectedChain {
        execution: row.try_get(0)?,
        outcome: row.try_get(1)?,
        found: row.try_get(2)?,
    })
}

type Append_<'q> = Query<'q, Postgres, PgArguments>;

/// First and last append of a chain. The chain starts at the sequence number of the first append,
/// and the execution row is that of the last.
struct Ends<'a> {
    first: &'a EncodedAppend,
    last: &'a EncodedAppend,
    terminal: Option<EventId>,
    /// Number of events that end the execution.
    terminals: i32,
    ids: IdRange,
}

/// Event IDs of a chain.
#[derive(Clone, Copy)]
struct IdRange {
    least: i64,
    most: i64,
    /// Whether each ID is above all before it.
    is_rising: bool,
}

impl IdRange {
    fn from_ids(ids: impl Iterator<Item = i64>) -> Self {
        let empty = Self { least: i64::MAX, most: i64::MIN, is_rising: true };
        let mut is_first = true;
        ids.fold(empty, |range, id| {
            let is_rising = range.is_rising && (is_first || id > range.most);
            is_first = false;
            Self { least: range.least.min(id), most: range.most.max(id), is_rising }
        })
    }
}

fn bind_items<'q>(query: Append_<'q>, chains: &[AppendChain<'q>]) -> Append_<'q> {
    let ends = chains.iter().filter_map(|chain| {
        let (first, last) = (chain.first()?, chain.last()?);
        let mut terminals = chain.iter().filter_map(|item| item.terminal);
        let terminal = terminals.next();
        let more = terminals.count();
        let terminals = i32::from(terminal.is_some()) + i32::try_from(more).unwrap_or(i32::MAX - 1);
        let ids = IdRange::from_ids(chain.iter().flat_map(|item| item.appended.ids()));
        Some(Ends { first, last, terminal, terminals, ids })
    });
    let ends: Vec<Ends<'_>> = ends.collect();
    let ends = ends.iter();
    columns!(
        query,
        ends,
        |ends| ends.first.execution(),
        ends.first.expected,
        ends.first.after.map(EventId::get),
        ends.last.last.map(EventId::get),
        ends.first.start.as_ref().map(|start| start.key.cast_signed()),
        ends.first.start.as_ref().map(|start| start.tenant.as_str()),
        ends.last.row.catalog.get(),
        plain(&ends.last.row.path),
        ends.first.start.as_ref().map(|_| ends.last.row.path.to_lowercase()),
        small(ends.last.row.playbook_version),
        ends.last.row.parent.map(|parent| parent.get()),
        ends.last.row.status.as_str(),
        stored_seq(ends.last.row.version),
        ends.terminal.map(EventId::get),
        PgTimestamptz(ends.last.row.started_at),
        PgTimestamptz(ends.last.row.updated_at),
        ends.last.row.ended_at.map(PgTimestamptz),
        ends.last.row.error.as_deref().map(plain),
        i64::from(ends.last.row.steps_entered),
        i64::from(ends.last.row.steps_completed),
        i64::from(ends.last.row.steps_failed),
        i64::from(ends.last.row.steps_running),
        ends.last.row.current_step.as_deref().map(plain),
        ends.ids.least,
        ends.ids.most,
        ends.ids.is_rising,
        ends.terminals,
    )
}

fn bind_due<'q>(query: Append_<'q>, chains: &[AppendChain<'q>]) -> Append_<'q> {
    let items = chains.iter().flatten();
    let due = items.clone().flat_map(|item| item.due.iter().map(|row| (item.execution(), row)));
    let query = columns!(
        query,
        due,
        |sent| sent.0,
        sent.1.id.get(),
        plain(&sent.1.kind),
        sent.1.target.get(),
        PgTimestamptz::clamped(sent.1.at),
        sent.1.payload.to_string(),
    );
    let delivered =
        items.flat_map(|item| item.delivered.iter().map(|id| (item.execution(), id.get())));
    columns!(query, delivered, |answered| answered.0, answered.1)
}

fn bind_blobs<'q>(query: Append_<'q>, chains: &[AppendChain<'q>]) -> Append_<'q> {
    let items = chains.iter().flatten();
    let blobs = items.flat_map(|item| item.blobs.iter().map(|blob| (item.execution(), blob)));
    columns!(query, blobs, |referred| referred.0, &referred.1.as_bytes()[..])
}

fn bind_outgoing<'q>(query: Append_<'q>, outgoing: &'q [OutboxEvent]) -> Append_<'q> {
    let outgoing = outgoing.iter();
    let query = columns!(
        query,
        outgoing,
        |row| row.execution.get(),
        row.event.get(),
        row.tenant.as_str(),
        &*row.subject,
        &*row.body,
    );
    query.bind(CODEC)
}

/// Replaces every escaped NUL (`\u0000`) in a JSON text. An escaped backslash followed by `u0000`
/// is not a NUL and stays unchanged.
pub(crate) fn replace_nul(text: &mut String) {
    if !text.contains("\\u0000") {
        return;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (escape, after) = match &rest[at..] {
            nul if nul.starts_with("\\u0000") => ("\\ufffd", at + 6),
            _ => (&rest[at..(at + 2).min(rest.len())], (at + 2).min(rest.len())),
        };
        out.push_str(escape);
        rest = &rest[after..];
    }
    out.push_str(rest);
    *text = out;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_escaped_nul_is_replaced() {
        for (before, after) in [
            (r#"{"a\u0000b":"\u0000"}"#, r#"{"a\ufffdb":"\ufffd"}"#),
            (r#""\\u0000""#, r#""\\u0000""#),
            (r#""\\\u0000é\n""#, r#""\\\ufffdé\n""#),
            (r#""plain""#, r#""plain""#),
        ] {
            let mut text = before.to_owned();
            replace_nul(&mut text);
            assert_eq!(text, after);
        }
    }
}

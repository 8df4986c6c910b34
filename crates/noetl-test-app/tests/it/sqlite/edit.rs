//! Changes stored events behind the back of the store.

use noetl_model::row::EventRow;
use noetl_model::row::body::{AppendHead, AppendRow, decode};
use noetl_model::{EventId, ExecutionId, Seq, Timestamp};
use rusqlite::{Connection, Row, params};

fn append(execution: ExecutionId, row: &Row<'_>) -> rusqlite::Result<Vec<EventRow>> {
    let head = AppendHead {
        execution,
        first_seq: seq(row, 0)?,
        last_seq: seq(row, 1)?,
        last_event: EventId::new(row.get(2)?),
        created_at: Timestamp::from_micros(row.get(3)?),
    };
    Ok(decode(&head, &row.get::<_, String>(4)?).expect("a readable append"))
}

fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(column)?.unsigned_abs()))
}

/// Lets `edit` change the events of an execution, and writes them as one append per run of
/// consecutive sequence numbers. Positions stay in order.
pub(super) fn edit_log(file: &Connection, execution: i64, edit: impl FnOnce(&mut Vec<EventRow>)) {
    let id = ExecutionId::new(execution);
    let sql = "select first_seq, last_seq, last_event_id, created_at, body, position
        from event_append where execution_id = ?1 order by first_seq";
    let mut read = file.prepare(sql).expect("a statement");
    let appends = read.query_map([execution], |row| Ok((append(id, row)?, row.get::<_, i64>(5)?)));
    let appends: Vec<_> =
        appends.expect("appends").map(|found| found.expect("an append")).collect();
    let mut position = appends.last().expect("an append").1;
    let mut rows: Vec<EventRow> = appends.into_iter().flat_map(|(rows, _)| rows).collect();
    edit(&mut rows);
    file.execute("delete from event_append where execution_id = ?1", [execution]).expect("no log");
    let runs = rows.chunk_by(|one, next| one.seq.next() == next.seq);
    for AppendRow { head, body } in
        runs.flat_map(AppendRow::encode).collect::<Vec<_>>().iter().rev()
    {
        let sql = "insert into event_append values (?1, ?2, ?3, ?4, ?5, null, ?6, ?7)";
        let [first, last] = [head.first_seq, head.last_seq].map(|seq| seq.0.cast_signed());
        let at = head.created_at.as_micros();
        let values = params![position, execution, first, last, head.last_event.get(), at, body];
        file.execute(sql, values).expect("an append");
        position -= last - first + 1;
    }
}

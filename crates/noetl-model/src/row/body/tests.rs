use std::sync::Arc;

use serde_json::json;

use super::{AppendHead, AppendRow, BODY_MAX, DECIDED, decode};
use crate::event::ReportedEvent;
use crate::row::tests::facts;
use crate::row::{EventRow, RowError};
use crate::{CommandId, Event, EventId, ExecutionId, Fact, Origin, Seq, Timestamp};

fn event(seq: u64, id: i64, at: i64, fact: Fact) -> Event {
    Event {
        execution: ExecutionId::new(8),
        id: EventId::new(id),
        seq: Seq(seq),
        at: Timestamp::from_micros(at),
        fact,
        actor: None,
    }
}

fn rows(events: &[Event]) -> Vec<EventRow> {
    events.iter().map(EventRow::from).collect()
}

fn decode_all(appends: &[AppendRow]) -> Vec<EventRow> {
    let decoded = appends.iter().map(|append| decode(&append.head, &append.body));
    decoded.flat_map(|rows| rows.expect("a readable body")).collect()
}

fn plain_step() -> Vec<Event> {
    let base = 312_345_678_901_234_567;
    let (command, next, step) = (CommandId::new(base - 83_886_080), base + 5, Arc::from("load"));
    let at = 1_704_067_200_000_123;
    let facts = facts();
    let entered = facts.iter().find(|fact| matches!(fact, Fact::StepEntered { round: None, .. }));
    vec![
        event(
            7,
            base,
            at,
            Fact::CallDone {
                command,
                step: Arc::clone(&step),
                data: json!({"rows": 3}),
                reference: None,
                run: None,
            },
        ),
        event(8, base + 1, at, Fact::CommandCompleted { command, step, item: None }),
        event(9, base + 4, at, entered.expect("a step that is entered").clone()),
        event(
            10,
            next,
            at,
            Fact::CommandClaimed {
                command: CommandId::new(next),
                step: Arc::from("b"),
                worker: Arc::from("local"),
            },
        ),
    ]
}

#[test]
fn an_append_of_every_fact_decodes_to_the_same_rows() {
    let events = facts().into_iter().zip(1..);
    let events: Vec<Event> = events
        .map(|(fact, seq): (Fact, u64)| {
            let at = 1_704_067_200_000_123 + i64::try_from(seq % 3).expect("a small number");
            event(seq, i64::try_from(seq * 7 % 50).expect("a small number"), at, fact)
        })
        .collect();
    let rows = rows(&events);
    let appends = AppendRow::encode(&rows);
    assert_eq!(appends.len(), 1);
    assert_eq!(decode_all(&appends), rows);
    for (row, event) in decode_all(&appends).iter().zip(&events) {
        assert_eq!(row.decode().expect("a readable row"), *event);
    }
}

#[test]
fn a_body_omits_what_the_append_and_the_type_imply() {
    let appends = AppendRow::encode(&rows(&plain_step()));
    let body = concat!(
        r#"[["call.done","load",5,83886085,{"d":{"rows":3}}],"#,
        r#"["command.completed","load",4,83886085],"#,
        r#"["step.enter","a/b",1,null,{"m":{"generation":2}}],"#,
        r#"["command.claimed","b",0,0,{"w":"local"}]]"#
    );
    assert_eq!(appends[0].body, body);
    assert_eq!(appends[0].head.first_seq, Seq(7));
    assert_eq!(appends[0].head.last_seq, Seq(10));
}

#[test]
fn extreme_ids_times_and_texts_are_decoded_exactly() {
    let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
    let texts = ["", "\"", "\\", "\0", "\u{7f}", "\u{2028}", "tab\tline\n", "日本", "null"];
    let mut events = Vec::new();
    for (seq, (&id, &at)) in (1..).zip(
        extremes
            .iter()
            .flat_map(|id| extremes.map(|at| (id, at)))
            .collect::<Vec<_>>()
            .iter()
            .map(|(id, at)| (*id, at)),
    ) {
        let text = texts[usize::try_from(seq).expect("a small number") % texts.len()];
        let fact = Fact::Reported(Box::new(ReportedEvent {
            event_type: text.to_owned(),
            step: Arc::from(text),
            status: text.to_owned(),
            payload: Some(json!(null)),
            meta: Some(json!({text: [text, 1.5e300, -0.0, i64::MAX, u64::MAX]})),
            worker: Some(Arc::from(text)),
            key: Some(at),
            columns: None,
        }));
        events.push(event(seq, id, at, fact));
    }
    let rows = rows(&events);
    assert_eq!(decode_all(&AppendRow::encode(&rows)), rows);
}

#[test]
fn large_appends_are_split_between_events() {
    let text = "x".repeat(BODY_MAX / 3);
    let large = |seq: u64, times: usize| {
        let id = i64::try_from(seq).expect("a small number");
        event(seq, id, id, Fact::PlaybookCancelled { reason: Some(text.repeat(times)) })
    };
    let sizes = [1, 1, 1, 1, 9, 1];
    let events: Vec<Event> = (1..).zip(sizes).map(|(seq, times)| large(seq, times)).collect();
    let rows = rows(&events);
    let appends = AppendRow::encode(&rows);
    let ranges: Vec<_> =
        appends.iter().map(|append| (append.head.first_seq.0, append.head.last_seq.0)).collect();
    assert_eq!(ranges, [(1, 2), (3, 4), (5, 5), (6, 6)]);
    assert!(
        appends
            .iter()
            .all(|append| append.body.len() < BODY_MAX || append.head.first_seq == Seq(5))
    );
    assert_eq!(decode_all(&appends), rows);
    assert_eq!(appends[1].head.last_event, EventId::new(4));
    assert!(AppendRow::encode(&[]).is_empty());
}

#[test]
fn every_usual_status_is_the_one_of_a_decided_event() {
    for (event_type, status) in DECIDED {
        let found = facts().into_iter().any(|fact| {
            let row = EventRow::from(&event(1, 1, 1, fact));
            row.origin == Origin::Decided
                && row.event_type.as_deref() == Some(event_type)
                && row.status.as_deref() == Some(status)
        });
        assert!(found, "no {event_type} has the status {status}");
    }
}

#[test]
fn unreadable_bodies_are_errors_that_name_the_append() {
    let head = AppendHead {
        execution: ExecutionId::new(8),
        first_seq: Seq(3),
        last_seq: Seq(4),
        last_event: EventId::new(9),
        created_at: Timestamp::from_micros(1),
    };
    for body in ["", "[", "{}", "[[]]", "[[1],[2]]", r#"[["a"],["b","c",1,2,{"o":"made"}]]"#] {
        let error = decode(&head, body).expect_err(body);
        assert!(matches!(error, RowError::Body { .. } | RowError::Count { .. }), "{body}");
        assert!(error.to_string().contains("append at event 3"), "{error}");
    }
    let later = decode(&head, r#"[["a","n",1,null,{"new":1}],["b","n",0,null,{},"more"]]"#);
    assert_eq!(later.expect("what a later version adds is ignored").len(), 2);
}

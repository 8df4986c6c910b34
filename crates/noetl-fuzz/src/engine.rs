//! Executions of any playbook that are told anything in any order.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use noetl_engine::{
    Abandon, Answer, AnswerSource, Cancel, Claim, Complete, DecisionEnv, DecisionValues, Execution,
    ExecutionLimits, Expire, Fail, Finalize, Input, MarkStarted, Rejection, StartInput, Status,
    Timeout, ValueRef, Wake, decide, pending_waits,
};
use noetl_model::event::ParkReason;
use noetl_model::row::EventRow;
use noetl_model::{
    CatalogId, CommandId, Event, EventId, ExecutionId, Fact, Failure, FailureKind, Map, Timestamp,
    Value,
};
use noetl_playbook::Playbook;
use noetl_template::Entropy;
use serde_json::json;

/// Inputs of one run: enough to go through any example several times.
const INPUTS_MAX: usize = 96;

/// Few of everything, so that one run is short.
const CAPS: ExecutionLimits =
    ExecutionLimits { loop_items: 50, in_flight: 8, depth: 4, events: 1000 };

/// Playbooks to choose from by the first byte. Any other byte stands before the text of one.
const EXAMPLES: &[&str] = &[
    include_str!("../../../examples/admission.yaml"),
    include_str!("../../../examples/approval.yaml"),
    include_str!("../../../examples/async-playbook.yaml"),
    include_str!("../../../examples/best-effort.yaml"),
    include_str!("../../../examples/branch.yaml"),
    include_str!("../../../examples/break.yaml"),
    include_str!("../../../examples/cursor.yaml"),
    include_str!("../../../examples/cycle.yaml"),
    include_str!("../../../examples/deadline.yaml"),
    include_str!("../../../examples/errors.yaml"),
    include_str!("../../../examples/join-any.yaml"),
    include_str!("../../../examples/join-each.yaml"),
    include_str!("../../../examples/join.yaml"),
    include_str!("../../../examples/loop-best-effort.yaml"),
    include_str!("../../../examples/loop-cycle.yaml"),
    include_str!("../../../examples/loop-map.yaml"),
    include_str!("../../../examples/loop-parallel.yaml"),
    include_str!("../../../examples/loop-playbooks.yaml"),
    include_str!("../../../examples/pipeline.yaml"),
    include_str!("../../../examples/poll.yaml"),
    include_str!("../../../examples/retry.yaml"),
    include_str!("../../../examples/set.yaml"),
    include_str!("../../../examples/sub-playbook.yaml"),
    include_str!("../../../examples/timeout.yaml"),
    include_str!("../../../examples/wait.yaml"),
    include_str!("../../../examples/workbook.yaml"),
];

/// Runs a playbook and tells its execution what the bytes say: what happens, to which command, with
/// which data.
///
/// Nothing panics; a refusal changes nothing; the log has no gap and one end; something is outstanding
/// until then; the log read again makes the state that was lived through, and so do its snapshot and
/// its rows.
pub fn engine(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let (playbook, script) = match examples().get(usize::from(*first)) {
        Some(playbook) => (Arc::clone(playbook), rest),
        None => {
            let (text, script) = crate::halves::halves(rest);
            let Ok(text) = std::str::from_utf8(text) else { return };
            let Some(playbook) = noetl_playbook::check(text).playbook else { return };
            (Arc::new(playbook), script)
        }
    };
    let mut run = Run::new(playbook);
    run.tell(start());
    for bytes in script.chunks_exact(3).take(INPUTS_MAX) {
        let [what, which, how] = [bytes[0], bytes[1], bytes[2]];
        let input = run.input(what, which, how);
        run.tell(input);
    }
    run.check();
}

/// Returns the examples, which are compiled once.
fn examples() -> &'static [Arc<Playbook>] {
    static COMPILED: LazyLock<Vec<Arc<Playbook>>> = LazyLock::new(|| {
        let compiled = |text: &&str| noetl_playbook::check(text).playbook.map(Arc::new);
        EXAMPLES.iter().map(|text| compiled(text).expect("an example is right")).collect()
    });
    &COMPILED
}

/// An execution and its event log.
struct Run {
    playbook: Arc<Playbook>,
    state: Execution,
    log: Vec<Arc<Event>>,
}

impl Run {
    fn new(playbook: Arc<Playbook>) -> Self {
        Self { playbook, state: Execution::new(ExecutionId::new(1)), log: Vec::new() }
    }

    /// Decides an input, with what it asks for loaded from the log.
    fn tell(&mut self, input: Input) {
        let before = self.state.clone();
        let mut loaded = DecisionValues::new();
        loop {
            let mut next_id = 100 + i64::try_from(self.log.len()).expect("a short log");
            let mut moment = DecisionEnv {
                now: Timestamp::from_millis(1_704_067_200_000 + next_id),
                ids: &mut || {
                    next_id += 1;
                    EventId::new(next_id)
                },
                entropy: Entropy::new(7),
                env: Arc::new(BTreeMap::new()),
                loaded: loaded.clone(),
                caps: CAPS,
                notify: &|_| true,
                traced: true,
                claim_for: &mut |command, _| {
                    (command.get() % 2 == 0).then(|| Arc::from("claimant"))
                },
            };
            match decide(&self.playbook, &mut self.state, input.clone(), &mut moment) {
                Ok(decision) => {
                    self.log.extend(decision.events);
                    return;
                }
                Err(Rejection::Need(places)) => {
                    assert!(!places.is_empty(), "a need names what it needs");
                    for place in places {
                        assert!(!loaded.has(&place), "{place:?} is asked for again");
                        self.load(&mut loaded, place);
                    }
                }
                Err(_) => {
                    assert_eq!(self.state, before, "a refusal changes nothing");
                    return;
                }
            }
        }
    }

    fn load(&self, loaded: &mut DecisionValues, place: ValueRef) {
        let value = match &place {
            ValueRef::Event { seq, .. } => self.log.iter().find(|event| event.seq == *seq),
            ValueRef::Blob(_) => None,
        };
        match value {
            Some(event) => loaded.insert(event),
            None => loaded.insert_unreadable(place, "it is gone"),
        }
    }

    /// Returns the input that three bytes encode. Most inputs refer to an open command.
    fn input(&self, what: u8, which: u8, how: u8) -> Input {
        let open: Vec<CommandId> = self.state.open_commands().map(|(id, _)| id).collect();
        let known = open.get(usize::from(which) % open.len().max(1));
        let command = known.copied().unwrap_or(CommandId::new(i64::from(which)));
        let open = self.state.open_command(command);
        let step = open.map_or_else(|| Arc::from("start"), |open| open.issued.step.clone());
        let parked = open.and_then(|open| open.parked());
        let worker: Arc<str> = if how.is_multiple_of(2) { "a".into() } else { "b".into() };
        let (ctx, local) = (named(how, "x"), named(how, "y.z"));
        let outcome = || match how % 3 {
            0 => Err(failure(how)),
            _ => Ok(data(how)),
        };
        let answer = |from| {
            let outcome = outcome();
            Input::Answer(Box::new(Answer { command, from, outcome, reference: None, actor: None }))
        };
        match what % 16 {
            0 => start(),
            1 => Input::Claim(Claim { command, worker }),
            2 => Input::Begin(MarkStarted { command, worker }),
            3 | 4 => {
                let (data, is_final) = (Some(data(how)), true);
                let (reference, step) = (None, local);
                Input::Complete(Complete {
                    command,
                    data,
                    reference,
                    is_final,
                    ctx,
                    step,
                    run: None,
                })
            }
            5 => {
                let (data, reference) = ((how.is_multiple_of(2)).then(|| data(how)), None);
                let (is_final, step) = (how.is_multiple_of(5), local);
                Input::Complete(Complete {
                    command,
                    data,
                    reference,
                    is_final,
                    ctx,
                    step,
                    run: None,
                })
            }
            6 => Input::Fail(Fail { command, failure: failure(how), ctx, step: local }),
            7 => {
                let (reason, attempts_max) = ("gone".to_owned(), 3);
                let may_have_run = how.is_multiple_of(2);
                Input::Expire(Expire { command, reason, attempts_max, may_have_run })
            }
            8 | 9 => match parked {
                Some(ParkReason::Until(at) | ParkReason::Retry(at)) => {
                    Input::Wake(Wake { command, at: *at })
                }
                Some(ParkReason::Child(child)) => answer(AnswerSource::Child(child.execution)),
                Some(ParkReason::Callback(_)) => answer(AnswerSource::Trusted),
                None => answer(AnswerSource::Trusted),
            },
            10 => answer(AnswerSource::Token(Arc::from("guessed"))),
            11 => Input::Timeout(Timeout::Step { step, run: u32::from(how % 4) }),
            12 => {
                let until = Timestamp::from_micros(i64::MAX);
                Input::Timeout(Timeout::Admission { step, until })
            }
            13 if how.is_multiple_of(8) => Input::Timeout(Timeout::Execution),
            14 if how.is_multiple_of(8) => Input::Finalize(Finalize { error: None, actor: None }),
            15 if how.is_multiple_of(8) => Input::Cancel(Cancel { reason: None, actor: None }),
            _ => Input::Abandon(Abandon),
        }
    }

    /// Checks the invariants of the log and of the resulting state.
    fn check(&self) {
        let mut replayed = Execution::new(self.state.id());
        for (at, event) in self.log.iter().enumerate() {
            assert_eq!(event.seq.0, at as u64 + 1, "no gap in the log");
            let row = EventRow::from(&**event);
            assert_eq!(row.decode().as_ref().ok(), Some(&**event), "an event is its row: {row:?}");
            replayed.apply(event);
        }
        let snapshot = self.state.to_snapshot();
        assert_eq!(replayed.to_snapshot(), snapshot, "replay equals life");
        let restored = Execution::from_snapshot(self.state.id(), &snapshot).expect("a snapshot");
        assert_eq!(restored.to_snapshot(), snapshot, "a snapshot is the state");
        if self.state.status() == Status::Running {
            assert!(!pending_waits(&self.state).is_empty(), "something is outstanding");
        }
        let ends = self.log.iter().filter(|event| event.fact.is_end()).count();
        assert!(ends <= 1, "it ends once, not {ends} times");
        let started = |event: &&Arc<Event>| matches!(event.fact, Fact::PlaybookStarted(_));
        let starts = self.log.iter().filter(started).count();
        assert_eq!(starts, usize::from(!self.log.is_empty()), "it begins once");
    }
}

fn start() -> Input {
    Input::Start(Box::new(StartInput {
        catalog: CatalogId::new(1),
        path: Arc::from("t"),
        version: 1,
        payload: Map::new(),
        parent: None,
        pool: None,
        parent_command: None,
        returns: None,
        depth: 0,
        forked: None,
        trace: None,
        actor: None,
    }))
}

fn named(how: u8, name: &str) -> Map {
    match how % 7 {
        0 => Map::from_iter([(name.to_owned(), data(how / 7))]),
        _ => Map::new(),
    }
}

/// Returns the result of a tool, of every type and in the forms that the examples expect.
fn data(how: u8) -> Value {
    match how % 20 {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(how),
        4 => json!(-1.5e300),
        5 => json!(""),
        6 => json!("{{ ctx.x }}"),
        7 => json!([]),
        8 => json!([1, 2, 3]),
        9 => json!({}),
        10 => json!({ "status": "error", "error": { "kind": "timeout" } }),
        11 => json!({ "rows": [{ "id": 1 }, { "id": 2 }] }),
        12 => json!([{ "id": 1 }, { "id": 2 }, { "id": 3 }]),
        13 => json!({ "done": true, "ok": true, "ready": true, "status": "ok", "count": 3 }),
        14 => json!({ "done": false, "ok": false, "ready": false, "page": 2, "items": [1] }),
        15 => json!("x".repeat(70_000)),
        16 => json!({ "big": "y".repeat(40_000), "approved": true }),
        17 => json!({ "__proto__": 1, "a.b": { "": null } }),
        18 => json!(i64::MIN),
        _ => json!([[[[[[how]]]]]]),
    }
}

fn failure(how: u8) -> Failure {
    let kind = match how % 4 {
        0 => FailureKind::Unknown,
        1 => FailureKind::Timeout,
        2 => FailureKind::Config,
        _ => FailureKind::ChildFailed,
    };
    Failure::new(kind, "it broke")
}

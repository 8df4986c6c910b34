//! Workers elsewhere that wait for a command, and what they are to stop.
//!
//! A caller that finds nothing waits here. A commit that leaves a command to be taken calls one that
//! would take it, so that a hundred waiting workers do not all run for one command. Who is called and
//! goes away, or finds nothing, passes the call on.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::command::DEFAULT_POOL;
use noetl_model::{CommandId, Event, Fact, Snowflakes, Tenant, Timestamp};
use noetl_store::Wanted;
use tokio::sync::Notify;

/// How often a call that led to nothing is passed on. What it was about has most likely been taken by
/// somebody else; whoever waits looks by itself now and then.
const PASSED_ON_MAX: u8 = 8;

/// Commands to be stopped that are remembered, oldest forgotten first: those of failing executions
/// end within half a minute.
const STOPS_MAX: usize = 4096;

/// Commands whose `command.issued` is at hand for whoever takes them, oldest forgotten first: the next
/// call reads the others from the store. Each has at most what is kept inline, and most a few hundred
/// bytes.
const ISSUED_MAX: usize = 1024;

/// Who has waited longer than this comes before the next step of an execution that just had a place.
const WAITED_LONG: Duration = Duration::from_millis(50);

/// How many places are left free for one command at most: it may be gone, or others' turn before it.
const PLACES_MAX: u8 = 4;

/// Of so many places one is left free though nobody is known here to wait: somebody may elsewhere.
const ONE_FREE_IN: u32 = 32;

/// Who waits. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Caller>>,
    stopped: HashSet<CommandId>,
    stops: VecDeque<CommandId>,
    issued: HashMap<CommandId, Kept>,
    in_order: VecDeque<CommandId>,
    /// Whether anybody ever waited.
    is_used: bool,
    /// How many places went on within their execution.
    handed: u32,
}

/// What was issued and nobody has taken, as far as is known here.
struct Kept {
    event: Arc<Event>,
    /// How many places were left free for it.
    places: u8,
}

struct Caller {
    wanted: Wanted,
    /// What it is called for; none when it is not called.
    called: Mutex<Option<Call>>,
    notify: Notify,
}

/// A command that somebody is called for.
#[derive(Clone)]
struct Call {
    pool: Arc<str>,
    tool: Arc<str>,
    /// Whose it is, where that is known.
    tenant: Option<Tenant>,
    /// How often the call has been passed on.
    passed_on: u8,
}

impl Call {
    fn is_for(&self, caller: &Caller) -> bool {
        let wanted = &caller.wanted;
        let whose = wanted.tenant.as_ref().zip(self.tenant.as_ref());
        wanted.takes(&self.pool, &self.tool) && whose.is_none_or(|(theirs, its)| theirs == its)
    }
}

impl Kept {
    fn is_wanted(&self, wanted: &Wanted) -> bool {
        match &self.event.fact {
            Fact::CommandIssued(issued) => {
                wanted.takes(issued.pool.as_deref().unwrap_or(DEFAULT_POOL), &issued.tool)
            }
            _ => false,
        }
    }
}

impl Caller {
    /// Whether it takes whatever one would that wants this.
    fn serves(&self, wanted: &Wanted) -> bool {
        self.wanted.pool() == wanted.pool()
            && self.wanted.kinds.as_ref().is_none_or(|kinds| Some(kinds) == wanted.kinds.as_ref())
            && self.wanted.tenant.as_ref().is_none_or(|its| Some(its) == wanted.tenant.as_ref())
    }

    fn called(&self) -> std::sync::MutexGuard<'_, Option<Call>> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls it, unless it is called already.
    fn call(&self, call: &Call) -> bool {
        let mut called = self.called();
        if called.is_some() {
            return false;
        }
        *called = Some(call.clone());
        self.notify.notify_one();
        true
    }
}

impl Calls {
    /// Waits in line.
    pub(crate) fn wait_for(&self, wanted: Wanted) -> InLine {
        let caller = Arc::new(Caller { wanted, called: Mutex::default(), notify: Notify::new() });
        let mut state = self.lock();
        state.is_used = true;
        state.waiting.push_back(caller.clone());
        drop(state);
        InLine { calls: self.clone(), caller }
    }

    /// Whether anybody waits here now and then.
    pub(crate) fn is_used(&self) -> bool {
        self.lock().is_used
    }

    /// Whether a place that has just become free, for one that takes what it wants, is not to go on
    /// within its execution: because a command has waited for long, or now and then so that one that
    /// is not known here may be found. Then whoever has the place looks for what waits. While somebody
    /// of the same pool does so, there are places enough.
    pub(crate) fn is_anothers_turn(&self, wanted: &Wanted, now: Timestamp) -> bool {
        let mut state = self.lock();
        let State { waiting, issued, in_order, handed, .. } = &mut *state;
        if waiting.iter().any(|caller| caller.serves(wanted)) {
            return false;
        }
        while in_order.front().is_some_and(|oldest| !issued.contains_key(oldest)) {
            in_order.pop_front();
        }
        let long_ago = now.minus(WAITED_LONG);
        for command in in_order.iter() {
            if Snowflakes::time_of(command.get()) > long_ago {
                break;
            }
            let Some(kept) = issued.get_mut(command) else { continue };
            if kept.is_wanted(wanted) {
                kept.places += 1;
                if kept.places >= PLACES_MAX {
                    issued.remove(command);
                }
                return true;
            }
        }
        *handed = (*handed + 1) % ONE_FREE_IN;
        *handed == 0
    }

    /// Calls the first that would take a command of this pool with this tool, and of this tenant if
    /// that is known.
    pub(crate) fn offer(&self, pool: &str, tool: &str, tenant: Option<&Tenant>) {
        let tenant = tenant.cloned();
        let call = Call { pool: pool.into(), tool: tool.into(), tenant, passed_on: 0 };
        let state = self.lock();
        let _ = state.waiting.iter().find(|caller| call.is_for(caller) && caller.call(&call));
    }

    /// Keeps the `command.issued` of a command that nobody has taken yet.
    pub(crate) fn keep(&self, event: &Arc<Event>) {
        let mut state = self.lock();
        let command = event.id.into();
        let kept = Kept { event: event.clone(), places: 0 };
        if state.issued.insert(command, kept).is_some() {
            return;
        }
        state.in_order.push_back(command);
        if state.in_order.len() > ISSUED_MAX
            && let Some(oldest) = state.in_order.pop_front()
        {
            state.issued.remove(&oldest);
        }
    }

    /// The `command.issued` of a command, if it is at hand. Whoever asks is to hand it out.
    pub(crate) fn issued(&self, command: CommandId) -> Option<Arc<Event>> {
        self.lock().issued.remove(&command).map(|kept| kept.event)
    }

    /// Remembers that a command that runs elsewhere is not wanted any more.
    pub(crate) fn stop(&self, command: CommandId) {
        let mut state = self.lock();
        if !state.stopped.insert(command) {
            return;
        }
        state.stops.push_back(command);
        if state.stops.len() > STOPS_MAX
            && let Some(oldest) = state.stops.pop_front()
        {
            state.stopped.remove(&oldest);
        }
    }

    /// Whether a command that runs elsewhere is not wanted any more, as far as is known here.
    pub(crate) fn is_stopped(&self, command: CommandId) -> bool {
        self.lock().stopped.contains(&command)
    }

    /// Calls the next in line after one that would take the same.
    fn pass_on(&self, from: &Arc<Caller>, call: Call) {
        if call.passed_on >= PASSED_ON_MAX {
            return;
        }
        let call = Call { passed_on: call.passed_on + 1, ..call };
        let state = self.lock();
        let place = state.waiting.iter().position(|caller| Arc::ptr_eq(caller, from));
        let mut after = state.waiting.iter().skip(place.map_or(0, |place| place + 1));
        let _ = after.find(|caller| call.is_for(caller) && caller.call(&call));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Every critical section is a few assignments that cannot panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in line. Dropping it leaves the line.
pub(crate) struct InLine {
    calls: Calls,
    caller: Arc<Caller>,
}

impl InLine {
    /// Resolves when called.
    pub(crate) async fn called(&self) {
        self.caller.notify.notified().await;
    }

    /// What was called for is looked for now; a later call is another one.
    pub(crate) fn looks(&self) -> Looking<'_> {
        Looking { line: self, call: self.caller.called().take() }
    }
}

/// A look after a call.
pub(crate) struct Looking<'l> {
    line: &'l InLine,
    call: Option<Call>,
}

impl Looking<'_> {
    pub(crate) fn found(mut self) {
        self.call = None;
    }
}

impl Drop for Looking<'_> {
    /// A look that found nothing, or was given up, was somebody else's to make.
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.line.calls.pass_on(&self.line.caller, call);
        }
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        // Not held while the line is locked: who calls has the line first.
        let call = self.caller.called().take();
        if let Some(call) = call {
            self.calls.pass_on(&self.caller, call);
        }
        self.calls.lock().waiting.retain(|caller| !Arc::ptr_eq(caller, &self.caller));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use noetl_model::{EventId, ExecutionId, Fact, Seq, Timestamp};

    use noetl_store::conformance::story::issued_for;

    use super::*;

    fn wanting(pool: &str, kinds: &[&str]) -> Wanted {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Wanted { pool: Some(Arc::from(pool)), kinds: Some(kinds), ..Wanted::default() }
    }

    fn is_called(line: &InLine) -> bool {
        line.called().now_or_never().is_some()
    }

    #[test]
    fn the_first_that_would_take_a_command_is_called_and_no_other() {
        let calls = Calls::default();
        let gpu = calls.wait_for(wanting("gpu", &["python"]));
        let http = calls.wait_for(wanting("shared", &["http"]));
        let first = calls.wait_for(wanting("shared", &["python", "http"]));
        let second = calls.wait_for(wanting("shared", &["python"]));
        calls.offer("shared", "python", None);
        assert!(is_called(&first));
        assert!(!is_called(&gpu) && !is_called(&http) && !is_called(&second));
        calls.offer("shared", "python", None);
        assert!(is_called(&second), "the first is called already");
    }

    #[test]
    fn who_goes_away_passes_its_call_on() {
        let calls = Calls::default();
        let first = calls.wait_for(wanting("shared", &["python"]));
        let second = calls.wait_for(wanting("shared", &["python"]));
        calls.offer("shared", "python", None);
        drop(first);
        assert!(is_called(&second));
        drop(second);
        assert!(calls.lock().waiting.is_empty());
    }

    #[test]
    fn a_look_that_finds_nothing_passes_the_call_on_and_one_that_finds_does_not() {
        let calls = Calls::default();
        let first = calls.wait_for(wanting("shared", &["python"]));
        let second = calls.wait_for(wanting("shared", &["python"]));
        calls.offer("shared", "python", None);
        drop(first.looks());
        assert!(is_called(&second));
        second.looks().found();
        drop(first);
        assert!(!is_called(&second));
    }

    #[test]
    fn a_call_goes_to_those_who_would_take_what_it_is_for() {
        let calls = Calls::default();
        let of = |tenant: &str, kind: &str| Wanted {
            tenant: Some(Tenant::new(tenant)),
            ..wanting("shared", &[kind])
        };
        let others: Vec<InLine> = (0..20).map(|_| calls.wait_for(of("a", "python"))).collect();
        let first = calls.wait_for(of("b", "python"));
        let http = calls.wait_for(of("b", "http"));
        let second = calls.wait_for(of("b", "python"));
        calls.offer("shared", "python", Some(&Tenant::new("b")));
        assert!(is_called(&first) && !others.iter().any(is_called));
        drop(first.looks());
        assert!(is_called(&second) && !is_called(&http));
    }

    #[test]
    fn a_call_is_not_passed_on_for_ever() {
        let calls = Calls::default();
        let line: Vec<InLine> =
            (0..20).map(|_| calls.wait_for(wanting("shared", &["python"]))).collect();
        calls.offer("shared", "python", None);
        let called = line.iter().take_while(|caller| {
            let is_called = is_called(caller);
            drop(caller.looks());
            is_called
        });
        assert_eq!(called.count(), 1 + usize::from(PASSED_ON_MAX));
    }

    fn event(number: i64, fact: Fact) -> Arc<Event> {
        Arc::new(Event {
            execution: ExecutionId::new(1),
            id: EventId::new(number),
            seq: Seq(1),
            at: Timestamp::from_micros(0),
            fact,
            actor: None,
        })
    }

    #[test]
    fn a_place_goes_on_within_its_execution_unless_somebody_has_waited_for_long() {
        let calls = Calls::default();
        let wanted = wanting("shared", &["python"]);
        let then = Timestamp::from_micros(1_900_000_000_000_000);
        let later = then.plus(WAITED_LONG * 2);
        let command = Snowflakes::first_at(then);
        calls.keep(&event(command, issued_for("a", None)));
        assert!(!calls.is_anothers_turn(&wanted, then), "it has not waited yet");
        assert!(!calls.is_anothers_turn(&wanting("gpu", &["python"]), later), "another's");
        assert!(!calls.is_anothers_turn(&wanting("shared", &["http"]), later), "another tool's");
        let somebody = calls.wait_for(Wanted { kinds: None, ..wanting("shared", &[]) });
        assert!(!calls.is_anothers_turn(&wanted, later), "somebody looks already");
        drop(somebody);
        let another = calls.wait_for(wanting("shared", &["http"]));
        for _ in 0..PLACES_MAX {
            assert!(calls.is_anothers_turn(&wanted, later));
        }
        drop(another);
        assert!(!calls.is_anothers_turn(&wanted, later), "nobody has taken it for so long");
        // Somebody may wait who is not known here.
        let left = (0..3 * ONE_FREE_IN).filter(|_| calls.is_anothers_turn(&wanted, later));
        assert_eq!(left.count(), 3);
    }

    #[test]
    fn what_was_issued_is_at_hand_once_and_not_for_ever() {
        let calls = Calls::default();
        let event = |number: i64| event(number, Fact::PlaybookCancelled { reason: None });
        for number in 0..=i64::try_from(ISSUED_MAX).unwrap() {
            calls.keep(&event(number));
            calls.keep(&event(number));
        }
        assert!(calls.issued(CommandId::new(0)).is_none(), "the oldest is forgotten");
        assert!(calls.issued(CommandId::new(1)).is_some());
        assert!(calls.issued(CommandId::new(1)).is_none(), "it is somebody's");
    }

    #[test]
    fn stops_are_remembered_and_not_for_ever() {
        let calls = Calls::default();
        for number in 0..=i64::try_from(STOPS_MAX).unwrap() {
            calls.stop(CommandId::new(number));
            calls.stop(CommandId::new(number));
        }
        assert!(!calls.is_stopped(CommandId::new(0)));
        assert!(calls.is_stopped(CommandId::new(1)));
    }
}

//! Long polls of remote workers, and the commands those workers have to stop.
//!
//! A long poll that finds no command waits here. A commit that leaves a command unclaimed wakes one
//! poll that accepts it, so a hundred waiting workers do not all query the store for one command. A
//! poll that is woken and disconnects or finds nothing passes the wakeup on to the next.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::command::DEFAULT_POOL;
use noetl_model::{CommandId, Event, Fact, Snowflakes, Tenant, Timestamp};
use noetl_store::CommandFilter;
use tokio::sync::{Notify, watch};

/// Times a wakeup that led to nothing is passed on. By then another worker has most likely claimed
/// the command, and waiting polls query the store at intervals anyway.
const PASSED_ON_MAX: u8 = 8;

/// Stopped commands remembered, oldest dropped first. Commands of failing executions end within
/// half a minute.
const STOPS_MAX: usize = 4096;

/// Cached `command.issued` events of unclaimed commands, oldest dropped first. Later claims read
/// the dropped ones from the store. The inline value limit bounds each event; most have a few
/// hundred bytes.
const ISSUED_MAX: usize = 1024;

/// Time after which a pending command takes precedence over a handoff.
const WAITED_LONG: Duration = Duration::from_millis(50);

/// Handoffs skipped for one pending command at most. It may already be claimed, or other commands
/// may go first.
const SKIPPED_MAX: u8 = 4;

/// Interval, in handoffs, at which a handoff is skipped although no pending command is known here:
/// one may be pending on another server.
const ONE_FREE_IN: u32 = 32;

/// Registry of long polls. Cheap to clone.
#[derive(Clone, Default)]
pub struct LongPolls(Arc<Mutex<LongPollState>>);

#[derive(Default)]
struct LongPollState {
    waiting: VecDeque<Arc<Caller>>,
    stopped: HashSet<CommandId>,
    stops: VecDeque<CommandId>,
    /// Changes with each command that has to stop.
    stop_signal: watch::Sender<()>,
    issued: HashMap<CommandId, UnclaimedCommand>,
    in_order: VecDeque<CommandId>,
    /// Whether any worker has ever polled this process.
    is_used: bool,
    /// Number of handoffs allowed, modulo [`ONE_FREE_IN`].
    handed: u32,
}

/// Issued command that is unclaimed as far as this process knows.
struct UnclaimedCommand {
    event: Arc<Event>,
    /// Number of handoffs skipped for this command.
    skipped: u8,
}

struct Caller {
    wanted: CommandFilter,
    /// Command the poll was woken for, or `None` if it was not woken.
    called: Mutex<Option<PollWakeup>>,
    notify: Notify,
}

#[derive(Clone)]
struct PollWakeup {
    pool: Arc<str>,
    tool: Arc<str>,
    /// Tenant of the command, if known.
    tenant: Option<Tenant>,
    /// Number of times the wakeup was passed on.
    passed_on: u8,
}

impl PollWakeup {
    fn is_for(&self, caller: &Caller) -> bool {
        let wanted = &caller.wanted;
        let whose = wanted.tenant.as_ref().zip(self.tenant.as_ref());
        wanted.takes(&self.pool, &self.tool) && whose.is_none_or(|(theirs, its)| theirs == its)
    }
}

impl UnclaimedCommand {
    fn is_wanted(&self, wanted: &CommandFilter) -> bool {
        match &self.event.fact {
            Fact::CommandIssued(issued) => {
                wanted.takes(issued.pool.as_deref().unwrap_or(DEFAULT_POOL), &issued.tool)
            }
            _ => false,
        }
    }
}

impl Caller {
    /// Returns `true` if this poll accepts every command that `wanted` accepts.
    fn serves(&self, wanted: &CommandFilter) -> bool {
        self.wanted.pool() == wanted.pool()
            && self.wanted.kinds.as_ref().is_none_or(|kinds| Some(kinds) == wanted.kinds.as_ref())
            && self.wanted.tenant.as_ref().is_none_or(|its| Some(its) == wanted.tenant.as_ref())
    }

    fn woken(&self) -> std::sync::MutexGuard<'_, Option<PollWakeup>> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the poll with `call`. Returns `false` if it has already been woken.
    fn call(&self, call: &PollWakeup) -> bool {
        let mut called = self.woken();
        if called.is_some() {
            return false;
        }
        *called = Some(call.clone());
        self.notify.notify_one();
        true
    }
}

impl LongPolls {
    /// Adds a long poll to the queue.
    pub fn wait_for(&self, wanted: CommandFilter) -> QueuedPoll {
        let caller = Arc::new(Caller { wanted, called: Mutex::default(), notify: Notify::new() });
        let mut state = self.lock();
        state.is_used = true;
        state.waiting.push_back(caller.clone());
        drop(state);
        QueuedPoll { calls: self.clone(), caller }
    }

    /// Returns `true` if any worker has ever polled this process.
    pub(crate) fn is_used(&self) -> bool {
        self.lock().is_used
    }

    /// Returns `true` if a handoff has to be skipped, so the worker polls for other commands. That
    /// is the case if a matching command has waited longer than [`WAITED_LONG`], and for one in
    /// [`ONE_FREE_IN`] handoffs, so a command that is not known here can be found. Always returns
    /// `false` while a matching long poll is open: it claims such commands.
    pub(crate) fn must_yield(&self, wanted: &CommandFilter, now: Timestamp) -> bool {
        let mut state = self.lock();
        let LongPollState { waiting, issued, in_order, handed, .. } = &mut *state;
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
                kept.skipped += 1;
                if kept.skipped >= SKIPPED_MAX {
                    issued.remove(command);
                }
                return true;
            }
        }
        *handed = (*handed + 1) % ONE_FREE_IN;
        *handed == 0
    }

    /// Wakes the first poll that accepts a command of this pool, tool, and tenant, if the tenant is
    /// known.
    pub(crate) fn offer(&self, pool: &str, tool: &str, tenant: Option<&Tenant>) {
        let tenant = tenant.cloned();
        let call = PollWakeup { pool: pool.into(), tool: tool.into(), tenant, passed_on: 0 };
        let state = self.lock();
        let _ = state.waiting.iter().find(|caller| call.is_for(caller) && caller.call(&call));
    }

    /// Caches the `command.issued` event of an unclaimed command.
    pub(crate) fn keep(&self, event: &Arc<Event>) {
        let mut state = self.lock();
        let command = event.id.into();
        let kept = UnclaimedCommand { event: event.clone(), skipped: 0 };
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

    /// Removes and returns the cached `command.issued` event of a command. The caller has to
    /// dispatch the command.
    pub fn issued(&self, command: CommandId) -> Option<Arc<Event>> {
        self.lock().issued.remove(&command).map(|kept| kept.event)
    }

    /// Records that a command on a remote worker has to stop.
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
        state.stop_signal.send_replace(());
    }

    /// Returns a receiver that changes whenever a command on a remote worker has to stop.
    pub fn stop_signal(&self) -> watch::Receiver<()> {
        self.lock().stop_signal.subscribe()
    }

    /// Returns `true` if a command on a remote worker has to stop, as far as this process knows.
    pub fn is_stopped(&self, command: CommandId) -> bool {
        self.lock().stopped.contains(&command)
    }

    /// Wakes the next poll after `from` that accepts the same command.
    fn pass_on(&self, from: &Arc<Caller>, call: PollWakeup) {
        if call.passed_on >= PASSED_ON_MAX {
            return;
        }
        let call = PollWakeup { passed_on: call.passed_on + 1, ..call };
        let state = self.lock();
        let index = state.waiting.iter().position(|caller| Arc::ptr_eq(caller, from));
        let mut after = state.waiting.iter().skip(index.map_or(0, |index| index + 1));
        let _ = after.find(|caller| call.is_for(caller) && caller.call(&call));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LongPollState> {
        // Every critical section is a few assignments that cannot panic halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Queued long poll. Dropping it removes it from the queue.
pub struct QueuedPoll {
    calls: LongPolls,
    caller: Arc<Caller>,
}

impl QueuedPoll {
    /// Waits until the poll is woken.
    pub async fn called(&self) {
        self.caller.notify.notified().await;
    }

    /// Starts a search for the command the poll was woken for. A wakeup from here on is a new one.
    pub fn looks(&self) -> PollAttempt<'_> {
        PollAttempt { line: self, call: self.caller.woken().take() }
    }
}

/// Search for a command after a wakeup.
pub struct PollAttempt<'l> {
    line: &'l QueuedPoll,
    call: Option<PollWakeup>,
}

impl PollAttempt<'_> {
    pub fn found(mut self) {
        self.call = None;
    }
}

impl Drop for PollAttempt<'_> {
    /// Passes the wakeup on if the search found nothing or was abandoned.
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.line.calls.pass_on(&self.line.caller, call);
        }
    }
}

impl Drop for QueuedPoll {
    fn drop(&mut self) {
        // The lock on the poll is released before the queue is locked: wakers lock the queue first.
        let call = self.caller.woken().take();
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

    fn wanting(pool: &str, kinds: &[&str]) -> CommandFilter {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        CommandFilter {
            pool: Some(Arc::from(pool)),
            kinds: Some(kinds),
            ..CommandFilter::default()
        }
    }

    fn is_called(line: &QueuedPoll) -> bool {
        line.called().now_or_never().is_some()
    }

    #[test]
    fn the_first_that_would_take_a_command_is_called_and_no_other() {
        let calls = LongPolls::default();
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
    fn a_cancelled_long_poll_passes_its_wakeup_on() {
        let calls = LongPolls::default();
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
        let calls = LongPolls::default();
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
    fn a_wakeup_goes_to_a_poll_that_accepts_the_command() {
        let calls = LongPolls::default();
        let of = |tenant: &str, kind: &str| CommandFilter {
            tenant: Some(Tenant::new(tenant)),
            ..wanting("shared", &[kind])
        };
        let others: Vec<QueuedPoll> = (0..20).map(|_| calls.wait_for(of("a", "python"))).collect();
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
        let calls = LongPolls::default();
        let line: Vec<QueuedPoll> =
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
    fn a_slot_stays_with_its_execution_until_another_command_waits_too_long() {
        let calls = LongPolls::default();
        let wanted = wanting("shared", &["python"]);
        let then = Timestamp::from_micros(1_900_000_000_000_000);
        let later = then.plus(WAITED_LONG * 2);
        let command = Snowflakes::first_at(then);
        calls.keep(&event(command, issued_for("a", None)));
        assert!(!calls.must_yield(&wanted, then), "it has not waited yet");
        assert!(!calls.must_yield(&wanting("gpu", &["python"]), later), "another's");
        assert!(!calls.must_yield(&wanting("shared", &["http"]), later), "another tool's");
        let somebody = calls.wait_for(CommandFilter { kinds: None, ..wanting("shared", &[]) });
        assert!(!calls.must_yield(&wanted, later), "somebody looks already");
        drop(somebody);
        let another = calls.wait_for(wanting("shared", &["http"]));
        for _ in 0..SKIPPED_MAX {
            assert!(calls.must_yield(&wanted, later));
        }
        drop(another);
        assert!(!calls.must_yield(&wanted, later), "nobody has taken it for so long");
        // Somebody may wait who is not known here.
        let left = (0..3 * ONE_FREE_IN).filter(|_| calls.must_yield(&wanted, later));
        assert_eq!(left.count(), 3);
    }

    #[test]
    fn an_issued_command_is_cached_for_one_read() {
        let calls = LongPolls::default();
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
        let calls = LongPolls::default();
        for number in 0..=i64::try_from(STOPS_MAX).unwrap() {
            calls.stop(CommandId::new(number));
            calls.stop(CommandId::new(number));
        }
        assert!(!calls.is_stopped(CommandId::new(0)));
        assert!(calls.is_stopped(CommandId::new(1)));
    }
}

//! Whether what callers saw of one execution could have happened in one order.
//!
//! Every call has a time at which it was made and, if it was answered, one at which the answer came.
//! There must be an order of all calls in which each takes effect at a moment between the two and says
//! what an execution that is changed by one caller at a time would have said. A call without an answer
//! may have taken effect at any time after it was made, or never. This is linearizability, by search.

use std::collections::HashSet;

/// The most calls of one execution: those that took effect are the bits of a number.
pub(crate) const CALLS_MAX: usize = 64;

/// How an execution that waits for one decision stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Absent,
    Running,
    /// Somebody has decided; it goes on by itself from here.
    Decided(u32),
    Completed(u32),
    Cancelled,
}

/// What was called, and what was said to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// It is started, once for a key.
    Start,
    /// It is decided; whether that was taken, if anything was said.
    Decide(u32, Option<bool>),
    /// It is cancelled; whether that was taken, if anything was said.
    Cancel(Option<bool>),
    /// It is looked at.
    See(Seen),
    /// Its result is looked at.
    Result(u32),
}

/// How it was seen to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Absent,
    Running,
    Completed,
    Cancelled,
    Failed,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    pub(crate) call: Call,
    pub(crate) made: u64,
    /// When it was answered, if it was.
    pub(crate) answered: Option<u64>,
}

impl Made {
    /// What it makes of a state, if it fits to it.
    fn after(&self, state: State) -> Option<State> {
        match (self.call, state) {
            (Call::Start, State::Absent) => Some(State::Running),
            (Call::Start, other) => Some(other),
            (Call::Decide(said, None | Some(true)), State::Running) => Some(State::Decided(said)),
            (
                Call::Decide(_, None | Some(false)),
                State::Decided(_) | State::Completed(_) | State::Cancelled,
            ) => Some(state),
            (Call::Decide(..), _) => None,
            (Call::Cancel(None | Some(true)), State::Running | State::Decided(_)) => {
                Some(State::Cancelled)
            }
            // Whoever repeats a cancel may be told that it is so.
            (Call::Cancel(_), State::Cancelled) => Some(state),
            (Call::Cancel(None | Some(false)), State::Completed(_)) => Some(state),
            (Call::Cancel(_), _) => None,
            (Call::See(seen), state) => (seen == look(state)).then_some(state),
            (Call::Result(said), State::Completed(is)) => (said == is).then_some(state),
            (Call::Result(_), _) => None,
        }
    }
}

fn look(state: State) -> Seen {
    match state {
        State::Absent => Seen::Absent,
        State::Running | State::Decided(_) => Seen::Running,
        State::Completed(_) => Seen::Completed,
        State::Cancelled => Seen::Cancelled,
    }
}

/// What of these calls can tell anything. A look without an answer says nothing; and of calls for the
/// same that were not answered the first may have taken effect whenever a later one may have.
pub(crate) fn telling(calls: &[Made]) -> Vec<Made> {
    let mut telling: Vec<Made> = Vec::new();
    for made in calls {
        let is_look = matches!(made.call, Call::See(_) | Call::Result(_));
        let is_repeat = |known: &Made| known.answered.is_none() && known.call == made.call;
        if made.answered.is_some() || (!is_look && !telling.iter().any(is_repeat)) {
            telling.push(*made);
        }
    }
    telling
}

/// Whether there is an order for these calls.
pub(crate) fn is_in_order(calls: &[Made]) -> bool {
    let calls = &telling(calls)[..];
    assert!(calls.len() <= CALLS_MAX, "more calls than can be looked at");
    let wanted = calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call.answered.is_some())
        .fold(0_u64, |mask, (place, _)| mask | 1 << place);
    let mut seen: HashSet<(u64, State)> = HashSet::new();
    let mut open = vec![(0_u64, State::Absent)];
    while let Some((done, state)) = open.pop() {
        if done & wanted == wanted {
            return true;
        }
        if !seen.insert((done, state)) {
            continue;
        }
        if let State::Decided(said) = state {
            open.push((done, State::Completed(said)));
        }
        // Nothing comes before what was answered before it was called.
        let left = || calls.iter().enumerate().filter(|(place, _)| done & (1 << place) == 0);
        let first_answer = left().filter_map(|(_, call)| call.answered).min();
        for (place, call) in left() {
            if first_answer.is_none_or(|first| call.made <= first)
                && let Some(next) = call.after(state)
            {
                open.push((done | 1 << place, next));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(call: Call, made: u64, answered: u64) -> Made {
        Made { call, made, answered: Some(answered) }
    }

    #[test]
    fn repeated_unsuccessful_requests_count_as_one_call() {
        let in_vain = |call: Call, made: u64| Made { call, made, answered: None };
        let mut calls: Vec<Made> = (0..500).map(|at| in_vain(Call::Start, at)).collect();
        calls.extend((0..500).map(|at| in_vain(Call::See(Seen::Running), at)));
        assert_eq!(telling(&calls).len(), 1);
        calls.push(made(Call::See(Seen::Running), 600, 601));
        assert!(is_in_order(&calls), "one of them was heard");
        calls.push(made(Call::See(Seen::Absent), 602, 603));
        assert!(!is_in_order(&calls));
    }

    #[test]
    fn one_after_the_other() {
        let calls = [
            made(Call::Start, 0, 1),
            made(Call::See(Seen::Running), 2, 3),
            made(Call::Decide(7, Some(true)), 4, 5),
            made(Call::Decide(8, Some(false)), 6, 7),
            made(Call::See(Seen::Completed), 8, 9),
            made(Call::Result(7), 10, 11),
            made(Call::Cancel(Some(false)), 12, 13),
        ];
        assert!(is_in_order(&calls));
    }

    #[test]
    fn answered_calls_are_visible_afterwards() {
        let gone = [made(Call::Start, 0, 1), made(Call::See(Seen::Absent), 2, 3)];
        assert!(!is_in_order(&gone));
        let meanwhile = [made(Call::Start, 0, 3), made(Call::See(Seen::Absent), 1, 2)];
        assert!(is_in_order(&meanwhile));
    }

    #[test]
    fn an_end_stays() {
        let back = [
            made(Call::Start, 0, 1),
            made(Call::Cancel(Some(true)), 2, 3),
            made(Call::See(Seen::Running), 4, 5),
        ];
        assert!(!is_in_order(&back));
        let stale = [
            made(Call::Start, 0, 1),
            made(Call::Decide(1, Some(true)), 2, 3),
            made(Call::See(Seen::Completed), 4, 5),
            made(Call::See(Seen::Running), 6, 7),
        ];
        assert!(!is_in_order(&stale));
    }

    #[test]
    fn one_decision_counts() {
        let both = [
            made(Call::Start, 0, 1),
            made(Call::Decide(1, Some(true)), 2, 9),
            made(Call::Decide(2, Some(true)), 3, 8),
        ];
        assert!(!is_in_order(&both));
        let other = [
            made(Call::Start, 0, 1),
            made(Call::Decide(1, Some(true)), 2, 3),
            made(Call::Decide(2, Some(false)), 4, 5),
            made(Call::Result(2), 6, 7),
        ];
        assert!(!is_in_order(&other));
    }

    #[test]
    fn unanswered_calls_may_or_may_not_have_taken_effect() {
        let lost = |call| Made { call, made: 2, answered: None };
        for seen in [Seen::Running, Seen::Cancelled] {
            let calls =
                [made(Call::Start, 0, 1), lost(Call::Cancel(None)), made(Call::See(seen), 9, 10)];
            assert!(is_in_order(&calls), "{seen:?}");
        }
        // Not both, one after the other.
        let calls = [
            made(Call::Start, 0, 1),
            lost(Call::Cancel(None)),
            made(Call::See(Seen::Cancelled), 9, 10),
            made(Call::See(Seen::Running), 11, 12),
        ];
        assert!(!is_in_order(&calls));
    }

    #[test]
    fn nothing_fails_by_itself() {
        assert!(!is_in_order(&[made(Call::Start, 0, 1), made(Call::See(Seen::Failed), 2, 3)]));
    }
}

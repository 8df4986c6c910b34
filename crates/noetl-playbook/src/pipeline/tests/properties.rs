//! Whatever the rules and the answers are.

use noetl_template::Entropy;
use proptest::prelude::*;

use super::*;

const LABELS: [&str; 4] = ["a", "b", "c", "d"];

fn when() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!("{{ output.status == 'error' }}")),
        Just(json!("output.data.n is defined and output.data.n > 1")),
        Just(json!("{{ _attempt < 3 }}")),
        Just(json!("ctx.n == 2")),
        Just(json!("{{ output.data > 'x' }}")),
    ]
}

fn value() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("{{ output }}"),
        Just("{{ (ctx.n | int) + 1 }}"),
        Just("{{ b.n }}"),
        Just("{{ 1 + 'a' }}"),
        Just("{{ iter }}"),
        Just("text"),
    ]
}

fn assignments() -> impl Strategy<Value = Value> {
    let scope = prop_oneof![Just("ctx"), Just("iter"), Just("step")];
    let path = prop_oneof![Just(json!(["n"])), Just(json!(["n", "m"])), Just(json!(["o"]))];
    let one = (scope, path, value())
        .prop_map(|(scope, path, value)| json!({"scope": scope, "path": path, "value": value}));
    proptest::collection::vec(one, 0..3).prop_map(Value::Array)
}

fn rule(tasks: usize) -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        Just(json!(null)),
        Just(json!(0)),
        Just(json!(2)),
        Just(json!("{{ 3 }}")),
        Just(json!("x")),
        Just(json!(1e9)),
        Just(json!(0.5)),
    ];
    let action = prop_oneof![
        3 => Just("continue"), 3 => Just("retry"), 3 => Just("jump"), 1 => Just("break"),
        1 => Just("fail"),
    ];
    let backoff = prop_oneof![Just("none"), Just("linear"), Just("exponential")];
    let numbers = (number.clone(), number.clone(), number.clone(), number);
    (when(), action, 0..tasks, numbers, backoff, assignments()).prop_map(
        |(when, action, to, (attempts, delay, most, jitter), backoff, set)| {
            json!({"when": when, "do": action, "to": LABELS[to], "attempts": attempts,
                   "delay": delay, "max_delay": most, "jitter": jitter, "backoff": backoff,
                   "set": set})
        },
    )
}

fn tasks() -> impl Strategy<Value = Value> {
    (1..=LABELS.len()).prop_flat_map(|count| {
        let task = (proptest::collection::vec(rule(count), 0..3), assignments(), value());
        proptest::collection::vec(task, count).prop_map(|tasks| {
            let task = |(place, (rules, set, input)): (usize, (Vec<Value>, Value, &str))| {
                json!({"name": LABELS[place], "kind": "x", "rules": rules, "set": set,
                       "input": {"v": input, "id": "{{ uuid4() }}"}})
            };
            tasks.into_iter().enumerate().map(task).collect()
        })
    })
}

fn answer() -> impl Strategy<Value = Result<Value, Failure>> {
    prop_oneof![
        Just(Ok(json!({"n": 1}))),
        Just(Ok(json!({"n": 2, "error": "own"}))),
        Just(Ok(json!([1, 2]))),
        Just(Ok(json!(null))),
        Just(refused(FailureKind::Timeout)),
        Just(Err(Failure::new(FailureKind::RateLimit, "slow")
            .with_details(json!({"retry_after": 2, "status": 429})))),
    ]
}

/// Returns every request of a run as text. Results are used in order.
fn turns(tasks: &Value, answers: &[Result<Value, Failure>], limit: u64) -> Vec<String> {
    let scope = Scope { entropy: Entropy::new(7), ..scope(json!({"w": 1})) };
    let mut run = PipelineRun::new(pipeline(tasks.clone()), scope).with_limit(limit);
    let (mut calls, mut requests) = (0, Vec::new());
    loop {
        let turn = run.turn();
        requests.push(format!("{turn:?}"));
        match turn {
            PipelineRequest::Call(call) => {
                assert!(call.attempt >= 1);
                run.answered(answers[calls % answers.len()].clone(), 1);
                calls += 1;
                assert!(u64::try_from(calls).unwrap() <= limit);
            }
            PipelineRequest::Pause { seconds } => assert!(seconds > 0.0 && seconds.is_finite()),
            PipelineRequest::Need(places) => panic!("{places:?}"),
            PipelineRequest::Secrets(names) => panic!("{names:?}"),
            PipelineRequest::Done(_) => return requests,
        }
    }
}

proptest! {
    #[test]
    fn a_run_ends_within_its_limit_and_is_deterministic(
        tasks in tasks(),
        answers in proptest::collection::vec(answer(), 1..8),
        limit in 1_u64..40,
    ) {
        prop_assert_eq!(turns(&tasks, &answers, limit), turns(&tasks, &answers, limit));
    }

    #[test]
    fn reported_writes_reproduce_the_values(
        writes in proptest::collection::vec(
            (proptest::collection::vec("[ab]", 1..3), 0..9_i64), 1..12),
    ) {
        use crate::pipeline::{note, write};
        use noetl_template::{Names, exact_json, ValueSlot};
        let (mut seen, mut noted) = (Names::new(), noetl_model::Map::new());
        for (path, value) in &writes {
            write(&mut seen, path, &json!(value));
            note(&mut noted, path, json!(value));
        }
        let mut again = Names::new();
        for (key, value) in &noted {
            let path: Vec<String> = key.split('.').map(str::to_owned).collect();
            write(&mut again, &path, value);
        }
        let shown = |names: &Names| {
            let value = |slot: &ValueSlot| match slot {
                ValueSlot::Held(data) => exact_json(data),
                ValueSlot::Away(_) => panic!("everything is held"),
            };
            let map: std::collections::BTreeMap<String, Value> =
                names.iter().map(|(key, slot)| (key.to_string(), value(slot))).collect();
            map
        };
        prop_assert_eq!(shown(&seen), shown(&again));
    }
}

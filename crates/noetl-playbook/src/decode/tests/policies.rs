//! Rules: their forms, and every mistake in them.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{playbook, report_steps};
use crate::document::StepWork;

fn rules(written: &str) -> Value {
    let playbook = playbook(&format!("  - step: start\n    tool:\n      kind: noop\n{written}"));
    match &playbook.steps[0].work {
        StepWork::Pipeline(pipeline) => pipeline.source["tasks"][0]["rules"].clone(),
        other => panic!("not a pipeline: {other:?}"),
    }
}

#[test]
fn every_form_of_a_rule_has_the_same_meaning() {
    let forms = [
        "      spec: {policy: {rules: [{when: a, then: {do: fail}}, {else: {then: {do: break}}}]}}\n",
        "      spec: {policy: {rules: [{when: a, then: {do: fail}}, {else: {do: break}}]}}\n",
        "      spec: {policy: {rules: [{when: a, then: {do: fail}}, {else: , then: {do: break}}]}}\n",
        "      spec: {policy: [{expr: a, do: fail}, {else: {do: break}}]}\n",
        "      policy: {rules: [{when: a, then: {do: fail}}, {else: {then: {do: break}}}]}\n",
        "      eval: [{expr: a, do: fail}, {else: {do: break}}]\n",
    ];
    for form in forms {
        assert_eq!(rules(form), json!([{"do": "fail", "when": "a"}, {"do": "break"}]), "{form}");
    }
    let constants = "      eval: [{expr: false, do: fail, set_ctx: {a: 1}, set_iter: {b: 2}}, {when: true, do: jump, to: start}]\n";
    assert_eq!(
        rules(constants),
        json!([
            {"do": "fail", "when": false, "set": [
                {"scope": "ctx", "path": ["a"], "value": 1},
                {"scope": "iter", "path": ["b"], "value": 2},
            ]},
            {"do": "jump", "to": "start", "when": true},
        ])
    );
}

#[test]
fn event_names_in_rules_are_canonical() {
    let written = "      spec: {policy: {rules: [{when: \"event.name == 'call.error'\", then: {do: fail}}]}}\n";
    assert_eq!(rules(written), json!([{"do": "fail", "when": "event.name == 'step.failed'"}]));
}

#[test]
fn older_forms_of_rules_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: a
    tool:
      kind: noop
      policy: [{expr: ctx.x, do: fail, set_ctx: {a: 1}, set_iter: {b: 2}}]
  - step: b
    tool:
      kind: noop
      eval: [{expr: ctx.x, do: fail}, {else: {do: break}}]
  - step: c
    tool:
      kind: noop
      spec:
        policy:
          rules:
            - else:
              then: {do: continue}
"), @r#"
    warning[W101] at 9:15, workflow[0].tool.policy: the policy stands beside 'kind'
      help: write it under 'spec': 'spec: {policy: …}'
    warning[W101] at 9:15, workflow[0].tool.policy: the policy is a list of rules
      help: write 'policy: {rules: […]}'
    warning[W101] at 9:17, workflow[0].tool.policy[0].expr: 'expr' is the older name of 'when'
      help: write 'when'
    warning[W101] at 9:30, workflow[0].tool.policy[0].do: the action stands beside the condition
      help: write 'then: {do: …}'
    warning[W101] at 9:40, workflow[0].tool.policy[0].set_ctx: 'set_ctx' is the older name of 'set' into ctx
      help: write 'set: {ctx.name: value}'
    warning[W101] at 9:57, workflow[0].tool.policy[0].set_iter: 'set_iter' is the older name of 'set' into iter
      help: write 'set: {iter.name: value}'
    warning[W103] at 10:11, workflow[1].step: no path leads to step 'b'
      help: lead an arc to it, or remove it
    warning[W101] at 13:13, workflow[1].tool.eval: 'eval' is the older form of a policy's rules
      help: write 'spec: {policy: {rules: [{when: "…", then: {do: …}}]}}'
    warning[W101] at 13:15, workflow[1].tool.eval[0].expr: 'expr' is the older name of 'when'
      help: write 'when'
    warning[W101] at 13:28, workflow[1].tool.eval[0].do: the action stands beside the condition
      help: write 'then: {do: …}'
    warning[W112] at 13:46, workflow[1].tool.eval[1].else: 'else' holds the action itself
      help: write '- else: {then: {do: …}}'
    warning[W103] at 14:11, workflow[2].step: no path leads to step 'c'
      help: lead an arc to it, or remove it
    warning[W112] at 20:15, workflow[2].tool.spec.policy.rules[0].else: 'then' stands beside 'else' instead of below it
      help: write '- else: {then: {do: …}}'
    "#);
}

#[test]
fn mistakes_in_rules_are_reported() {
    assert_snapshot!(report_steps("
  - step: start
    tool:
      - name: pull
        kind: noop
        spec:
          policy:
            rules:
              - when: \"{{ output.status == 'error' }}\"
                then: {do: retry, attempts: 0, backoff: exponentail, delay: -1, jitter: 2, max_delay: soon}
              - then: {do: retry}
              - else: {do: jmp}
              - else: {then: {do: jump}}
              - when: a
                else: {do: fail}
              - when: b
              - when: c
                then: retry
              - when: d
                then: [retry]
              - when: '{{ e'
                then: {do: fail}
              - when: f
                expr: g
                then: {do: fail}
              - when: ''
                then: {do: fail}
              - when: h
                then: {attempts: 3}
              - when: i
                then: {do: jump, to: pul}
              - when: j
                then: {do: jump, to: previous}
              - when: k
                then: {do: retry, attempts: '{{ n', delay: true}
              - text
"), @r#"
    error[E040] at 14:45, workflow[0].tool[0].spec.policy.rules[0].then.attempts: 'attempts' counts every execution, so it is at least 1
      help: write a whole number from 1
    error[E040] at 14:57, workflow[0].tool[0].spec.policy.rules[0].then.backoff: 'exponentail' is not possible here
      help: did you mean 'exponential'? write none, fixed, linear or exponential
    error[E040] at 14:77, workflow[0].tool[0].spec.policy.rules[0].then.delay: this is not a pause of up to one year
      help: write seconds (2, 0.5), a number with a unit (500ms, 5m), or 0 for none
    error[E040] at 14:89, workflow[0].tool[0].spec.policy.rules[0].then.jitter: 'jitter' is the fraction by which a pause may be shorter, 0 to 1
      help: write 0.2 to make each pause up to a fifth shorter, at random
    error[E040] at 14:103, workflow[0].tool[0].spec.policy.rules[0].then.max_delay: this is not a pause of up to one year
      help: write seconds (2, 0.5), a number with a unit (500ms, 5m), or 0 for none
    error[E040] at 15:17, workflow[0].tool[0].spec.policy.rules[1]: the rule has neither 'when' nor 'else'
      help: write '- {when: "…", then: {do: …}}' or '- else: {then: {do: …}}'
    warning[W112] at 16:23, workflow[0].tool[0].spec.policy.rules[2].else: 'else' holds the action itself
      help: write '- else: {then: {do: …}}'
    error[E040] at 16:28, workflow[0].tool[0].spec.policy.rules[2].else.do: 'jmp' is not possible here
      help: did you mean 'jump'? write continue, retry, jump, break or fail
    error[E040] at 17:30, workflow[0].tool[0].spec.policy.rules[3].else.then: the jump has no target
      help: add 'to: label'
    warning[W108] at 18:23, workflow[0].tool[0].spec.policy.rules[4].when: nothing in this playbook gives 'a' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E040] at 19:17, workflow[0].tool[0].spec.policy.rules[4].else: the rule has both 'when' and 'else'
      help: make the 'else' a rule of its own, after this one
    error[E040] at 20:17, workflow[0].tool[0].spec.policy.rules[5]: the rule does nothing
      help: add 'then: {do: continue}'
    warning[W108] at 20:23, workflow[0].tool[0].spec.policy.rules[5].when: nothing in this playbook gives 'b' a value
      help: declare it under 'workload', or assign it with 'set'
    warning[W108] at 21:23, workflow[0].tool[0].spec.policy.rules[6].when: nothing in this playbook gives 'c' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E040] at 22:23, workflow[0].tool[0].spec.policy.rules[6].then: the action is a bare word
      help: write '{do: retry}'
    warning[W108] at 23:23, workflow[0].tool[0].spec.policy.rules[7].when: nothing in this playbook gives 'd' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E040] at 24:23, workflow[0].tool[0].spec.policy.rules[7].then: an action is a mapping, found a list
      help: write '{do: retry, attempts: 3}'
    warning[W104] at 25:23, workflow[0].tool[0].spec.policy.rules[8].when: the condition is text around templates, not one expression, and so almost always true
      help: put the whole expression into one pair of braces: "{{ a and b }}"
    error[E050] at 25:27, workflow[0].tool[0].spec.policy.rules[8].when: the template does not compile: unexpected end of input, expected end of variable block
      help: check the braces, quotes and names of the template
    warning[W108] at 27:23, workflow[0].tool[0].spec.policy.rules[9].when: nothing in this playbook gives 'f' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E016] at 28:17, workflow[0].tool[0].spec.policy.rules[9].expr: the rule has two conditions
      help: keep 'when' and combine the two with 'and'
    error[E009] at 30:23, workflow[0].tool[0].spec.policy.rules[10].when: the condition is empty
      help: write a condition, or leave the key out for one that always holds
    warning[W108] at 32:23, workflow[0].tool[0].spec.policy.rules[11].when: nothing in this playbook gives 'h' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E040] at 33:23, workflow[0].tool[0].spec.policy.rules[11].then: the rule has no 'do'
      help: add 'do: retry', or another action
    warning[W108] at 34:23, workflow[0].tool[0].spec.policy.rules[12].when: nothing in this playbook gives 'i' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E040] at 35:38, workflow[0].tool[0].spec.policy.rules[12].then.to: there is no task labelled 'pul'
      help: did you mean 'pull'? the tasks of this step are pull
    warning[W108] at 36:23, workflow[0].tool[0].spec.policy.rules[13].when: nothing in this playbook gives 'j' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E040] at 37:38, workflow[0].tool[0].spec.policy.rules[13].then.to: there is no task before this one
      help: name the task to go on at, or write 'do: retry'
    warning[W108] at 38:23, workflow[0].tool[0].spec.policy.rules[14].when: nothing in this playbook gives 'k' a value
      help: declare it under 'workload', or assign it with 'set'
    error[E050] at 39:49, workflow[0].tool[0].spec.policy.rules[14].then.attempts: the template does not compile: unexpected end of input, expected end of variable block
      help: check the braces, quotes and names of the template
    error[E040] at 39:60, workflow[0].tool[0].spec.policy.rules[14].then.delay: this is not a pause of up to one year
      help: write seconds (2, 0.5), a number with a unit (500ms, 5m), or 0 for none
    error[E040] at 40:17, workflow[0].tool[0].spec.policy.rules[15]: a rule is a mapping, found text
      help: write '- {when: "…", then: {do: …}}' or '- else: {then: {do: …}}'
    "#);
    assert_snapshot!(report_steps("
  - step: a
    tool: {kind: noop, spec: {policy: text}}
  - step: b
    tool: {kind: noop, spec: {policy: {rules: {when: a}}}}
  - step: c
    tool: {kind: noop, eval: text}
  - step: d
    tool: {kind: noop}
    spec: {policy: {rules: []}}
"), @r#"
    error[E009] at 7:39, workflow[0].tool.spec.policy: expected a mapping, found text
      help: write 'policy: {rules: [{when: "…", then: {do: retry}}]}'
    error[E040] at 9:47, workflow[1].tool.spec.policy.rules: 'rules' is a list, found a mapping
      help: begin each rule with a dash: '- when: …'
    error[E009] at 11:30, workflow[2].tool.eval: expected a list of rules, found text
      help: write 'spec: {policy: {rules: [{when: "…", then: {do: …}}]}}'
    warning[W101] at 11:30, workflow[2].tool.eval: 'eval' is the older form of a policy's rules
      help: write 'spec: {policy: {rules: [{when: "…", then: {do: …}}]}}'
    error[E040] at 14:21, workflow[3].spec.policy.rules: the rules stand on the step, while a task is what they are about
      help: write them under the tool: 'tool: {spec: {policy: …}}'
    "#);
}

#[test]
fn needless_keys_of_rules_cause_warnings() {
    assert_snapshot!(report_steps("
  - step: start
    tool:
      kind: noop
      spec:
        policy:
          on_unmatched: continue
          rule: []
          rules:
            - {when: true, then: {do: fail, attempts: 3, to: x, tries: 4}}
            - {when: ctx.never, then: {do: fail}, colour: red}
"), @r"
    warning[W114] at 11:11, workflow[0].tool.spec.policy.on_unmatched: 'on_unmatched' of a policy has no effect
      help: remove it; without a matching rule an error fails the task
    warning[W102] at 12:11, workflow[0].tool.spec.policy.rule: unknown key 'rule', which has no effect
      help: did you mean 'rules'?
    warning[W114] at 14:45, workflow[0].tool.spec.policy.rules[0].then.attempts: 'attempts' has no effect on 'do: fail'
      help: remove it, or change the action
    warning[W114] at 14:58, workflow[0].tool.spec.policy.rules[0].then.to: 'to' has no effect on 'do: fail'
      help: remove it, or change the action
    warning[W102] at 14:65, workflow[0].tool.spec.policy.rules[0].then.tries: unknown key 'tries', which has no effect
      help: remove it; known here: do, attempts, delay, backoff, max_delay, jitter, to, set, desc
    warning[W106] at 15:15, workflow[0].tool.spec.policy.rules[1]: the rule on line 14 always applies, so this one never does
      help: move the rule without a condition to the end
    warning[W102] at 15:51, workflow[0].tool.spec.policy.rules[1].colour: unknown key 'colour', which has no effect
      help: remove it; known here: when, then, else, name, desc
    ");
}

// The playbooks that journeys run.

/** Text that would do something, were it ever taken for more than text. */
export const HOSTILE = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";

/** Waits for a word, goes by one of two ways, and fails unless `works` is true. */
export const LIVELY = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: lively, path: web/lively}
workload:
  works: false
  text: the disk is full
workflow:
  - step: start
    tool: {kind: noop, result: {text: "{{ workload.text }}", id: 9007199254740993}}
    next:
      arcs:
        - step: fetch
          set: {ctx.found: "{{ workload.text }}"}
  - step: fetch
    loop:
      in: "{{ range(6) | list }}"
      iterator: number
      spec: {mode: parallel, max_in_flight: 3}
    tool: {kind: shell, command: "echo item {{ number }}; sleep 0.2"}
    next:
      arcs:
        - step: pause
  - step: pause
    tool: {kind: approval, message: "Go on?"}
    next:
      spec: {mode: exclusive}
      arcs:
        - {step: fine, when: "{{ workload.works }}"}
        - {step: boom}
  - step: boom
    tool:
      kind: python
      input: {text: "{{ workload.text }}"}
      code: |
        print("about to fail")
        raise ValueError("boom " + text)
  - step: fine
    tool: {kind: noop, result: {message: it worked}}
`;

/** Waits until somebody stops it. */
export const PATIENT = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: patient, path: web/patient}
workload: {seconds: 3600}
workflow:
  - step: start
    tool: {kind: wait, seconds: "{{ workload.seconds }}"}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: noop, result: {done: true}}
`;

/** Waits for a person. */
export const ASKING = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asking, path: web/asking}
workflow:
  - step: start
    tool: {kind: approval, message: "Release version 2?", data: {changes: 12}}
    next:
      spec: {mode: exclusive}
      arcs:
        - {step: release, when: "{{ output.approved }}"}
        - {step: keep}
  - step: release
    tool: {kind: noop, result: {released: true}}
  - step: keep
    tool: {kind: noop, result: {released: false}}
`;

/** A result of nearly two megabytes, as large as a step may return. */
export const LARGE = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: web/large}
workload: {rows: 25000}
workflow:
  - step: start
    tool:
      kind: python
      input: {rows: "{{ workload.rows }}"}
      code: |
        result = {"rows": [{"id": 9007199254740993 + n, "text": "x" * 40} for n in range(rows)]}
`;

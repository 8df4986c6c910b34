/** What stands in a new document: a playbook that runs as it is. */
export const FIRST = `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: hello
  path: hello
workload:
  who: world
workflow:
  - step: start
    tool:
      kind: python
      input:
        who: "{{ workload.who }}"
      code: |
        result = {"greeting": f"Hello, {who}!"}
    next:
      arcs:
        - step: end

  - step: end
    tool:
      kind: noop
      result: "{{ start.greeting }}"
`;

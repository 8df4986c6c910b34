// The documents that journeys and pictures register.

/** What follows a person's answer. */
const ANSWERED = `    next:
      spec: {mode: exclusive}
      arcs:
        - {step: release, when: "{{ output.approved }}"}
        - {step: keep}
  - step: release
    tool: {kind: noop, result: {released: true}}
  - step: keep
    tool: {kind: noop, result: {released: false}}
`;

/** How the orders of a web shop come. */
const BY_WEBHOOK = `  source: webhook
  mode: push
  ingress:
    gateway_path: /ingress/orders
    verify: {type: bearer, secret: orders}
`;

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
${ANSWERED}`;

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

/** Is at work for a while. */
export const BUSY = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: busy, path: web/busy}
workload: {seconds: 600}
workflow:
  - step: start
    tool: {kind: shell, command: "sleep {{ workload.seconds }}", timeout: 1h}
`;

/** Every message to its listener starts that. */
export const BUSY_ORDERS = `apiVersion: noetl.io/v1
kind: Subscription
metadata: {name: orders, path: web/orders}
spec:
${BY_WEBHOOK}  dispatch: {playbook: web/busy}
`;

/** Has a mistake, which whoever is new mends; fails without an address, and asks before it sends. */
export const PARCELS = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parcels, path: web/parcels}
workload:
  address: ""
workflow:
  - step: pack
    loop:
      in: "{{ range(4) | list }}"
      iterator: parcel
      spec: {mode: parallel, max_in_flight: 2}
    tool: {kind: shel, command: "echo parcel {{ parcel }}"}
    next: {arcs: [{step: weigh}]}
  - step: weigh
    tool:
      kind: python
      input: {address: "{{ workload.address }}"}
      code: |
        if not address:
            raise ValueError("nobody to send it to")
        result = {"address": address}
    next: {arcs: [{step: ask}]}
  - step: ask
    tool: {kind: approval, message: "Send it to {{ weigh.address }}?", timeout: 1h}
    next: {arcs: [{step: send, when: "{{ output.approved }}"}, {step: keep}]}
  - step: send
    tool: {kind: wait, seconds: 3600}
  - step: keep
    tool: {kind: noop, result: {sent: false}}
`;

// What a small shop keeps and runs, so that pictures show something believable.

export const IMPORT = `# Fetches the day's orders of every region, checks them, and loads them.
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: import-orders
  path: shop/import-orders
  description: Fetches the day's orders of every region, checks them, and loads them into the warehouse.
workload:
  day: 2026-11-16   # ui:description=Which day to import
  strict: true      # ui:description=Whether one bad order stops the import
  regions: [north, south, east, west, islands]
workflow:
  - step: prepare
    tool: {kind: noop, result: {day: "{{ workload.day }}"}}
    next: {arcs: [{step: fetch, set: {ctx.day: "{{ workload.day }}"}}]}

  - step: fetch
    loop:
      in: "{{ workload.regions }}"
      iterator: region
      spec: {mode: parallel, max_in_flight: 3}
    tool: {kind: shell, command: "sleep 0.{{ region | length }}; echo '{{ region }}: 128 orders'"}
    next: {arcs: [{step: check}]}

  - step: check
    tool:
      kind: python
      input: {strict: "{{ workload.strict }}"}
      code: |
        orders = [{"id": 9007199254740993 + n, "total": 12.5 * n} for n in range(4)]
        bad = [order for order in orders if order["total"] <= 0]
        print(f"{len(orders)} orders, {len(bad)} of them without a total")
        result = {"orders": orders, "bad": len(bad), "clean": not bad or not strict}
    next:
      spec: {mode: exclusive}
      arcs:
        - {step: load, when: "{{ output.clean }}"}
        - {step: quarantine}

  - step: load
    tool: {kind: noop, result: {loaded: 640}}
    next: {arcs: [{step: report}]}

  - step: quarantine
    tool:
      kind: python
      input: {bad: "{{ check.bad }}"}
      code: |
        print("looking for the table quarantine.orders")
        raise LookupError(f"{bad} bad order and no table quarantine.orders to put it in")
    next: {arcs: [{step: report}]}

  - step: report
    tool: {kind: noop, result: {day: "{{ ctx.day }}", loaded: 640}}
`;

export const RELEASE = `# Asks a person before prices change.
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: release-prices, path: shop/release-prices, description: Asks a person before prices change.}
workload: {percent: 4}
workflow:
  - step: ask
    tool:
      kind: approval
      message: "Raise 1 284 prices by {{ workload.percent }} %?"
      data: {prices: 1284, percent: "{{ workload.percent }}", from: 2026-12-01}
      timeout: 24h
${ANSWERED}`;

export const REPORT = `# Adds up what was sold.
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: daily-report, path: shop/daily-report, description: Adds up what was sold.}
workload: {days: 1}
workflow:
  - step: sum
    tool: {kind: noop, result: {sold: 640}}
`;

export const SYNC = `# Keeps the stock of the warehouse in step.
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sync-stock, path: shop/sync-stock, description: Keeps the stock of the warehouse in step.}
workload: {seconds: 600}
workflow:
  - step: read
    tool: {kind: noop, result: {articles: 3200}}
    next: {arcs: [{step: send}]}
  - step: send
    tool: {kind: shell, command: "echo sending 3200 articles; sleep {{ workload.seconds }}", timeout: 1h}
    next: {arcs: [{step: confirm}]}
  - step: confirm
    tool: {kind: noop, result: {sent: true}}
`;

export const ORDERS = `# Every order that the web shop sends starts an import.
apiVersion: noetl.io/v1
kind: Subscription
metadata: {name: orders, path: shop/orders}
spec:
${BY_WEBHOOK}  dispatch: {playbook: shop/import-orders}
`;

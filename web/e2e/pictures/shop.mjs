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
  source: webhook
  mode: push
  ingress:
    gateway_path: /ingress/orders
    verify: {type: bearer, secret: orders}
  dispatch: {playbook: shop/import-orders}
`;

// The executions: what ran, what is running, what failed and why.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";

import { send, shown } from "../../api/client";
import { queries } from "../../api/queries";
import { STATUSES, type Execution } from "../../api/types";
import { Link, useSearch } from "../../shell/router";
import { Badge } from "../../ui/badge";
import { Id } from "../../ui/copy";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { duration, Time, useNow } from "../../ui/time";
import { ActivityChart } from "./activity";
import "./executions.css";
import { filterOf, isNarrow, paramsOf, SPANS, type Filter } from "./filter";
import { useLive } from "./live";

export default function ExecutionsPage() {
  const [query, change] = useSearch();
  const filter = useMemo(() => filterOf(query), [query]);
  // A span reaches back from when it was chosen, so that the list does not change its question by itself.
  const params = useMemo(() => paramsOf(filter, Date.now()), [filter]);
  const live = useLive(params);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const rows = live.rows;
  const here = useMemo(() => new Set(rows?.filter((row) => row.status === "RUNNING").map((row) => row.execution_id)), [rows]);
  const toCancel = [...marked].filter((id) => here.has(id));
  const seconds = SPANS[filter.since]?.seconds ?? reach(rows, live.hasMore);

  return (
    <div className="stack">
      <div className="line">
        <h1>Executions</h1>
        <span className={`push small faint live${live.link === "open" ? " is-completed" : live.link === "lost" ? " is-failed" : ""}`} role="status">
          {live.link === "open" ? "live" : live.link === "lost" ? `not live: ${live.why?.message ?? "no connection"}` : "connecting…"}
        </span>
      </div>
      {/* A failure is shown once: if the list can't be loaded, neither can the rest. */}
      {!live.error && (
        <div className="overview">
          <Counts filter={filter} choose={(status) => change({ status })} />
          <ActivityChart
            seconds={seconds}
            choose={(from, to) => change({ from: from.toISOString(), to: to.toISOString(), since: null }, true)}
          />
        </div>
      )}
      <Filters key={query.get("from") ?? ""} filter={filter} change={change} />
      <Cancelling ids={toCancel} done={() => setMarked(new Set())} />
      {live.error ? (
        <Failure of="The executions cannot be shown" error={live.error} retry={live.retry} />
      ) : !rows ? (
        <Loading of="the executions" />
      ) : rows.length === 0 ? (
        <Nothing filter={filter} clear={() => change({ status: null, path: null, text: null, since: null, from: null, to: null })} />
      ) : (
        <List rows={rows} marked={marked} mark={setMarked} />
      )}
      {rows && live.hasMore && (
        <button type="button" onClick={live.more} disabled={live.isFetchingMore}>
          {live.isFetchingMore ? "Fetching older ones…" : "Show older ones"}
        </button>
      )}
    </div>
  );
}

/** How far back the chart reaches while no span is chosen: an hour, or less where all there is is younger. */
function reach(rows: Execution[] | undefined, hasMore: boolean): number {
  const oldest = rows?.at(-1);
  const isYoung = oldest !== undefined && !hasMore && Date.now() - Date.parse(oldest.started_at) < 900_000;
  return isYoung ? 900 : 3600;
}

function Counts({ filter, choose }: { filter: Filter; choose(status: string | null): void }) {
  const { data, error, refetch } = useQuery({ ...queries.stats(), refetchInterval: 15_000 });
  if (error && !data) return <Failure of="The counts cannot be shown" error={error} retry={refetch} />;
  const stats = data?.stats;
  const counts = {
    RUNNING: stats?.running_executions,
    COMPLETED: stats?.successful_executions,
    FAILED: stats?.failed_executions,
    CANCELLED: stats?.cancelled_executions,
  };
  return (
    <div className="counts" role="group" aria-label="Show executions by state">
      <button type="button" aria-pressed={filter.status === null} onClick={() => choose(null)}>
        <strong>{stats?.total_executions ?? "…"}</strong> all
      </button>
      {STATUSES.map((status) => (
        <button
          key={status}
          type="button"
          className={`is-${status.toLowerCase()}`}
          aria-pressed={filter.status === status}
          onClick={() => choose(filter.status === status ? null : status.toLowerCase())}
        >
          <strong>{counts[status] ?? "…"}</strong> {status.toLowerCase()}
        </button>
      ))}
    </div>
  );
}

const BETWEEN = "between";

/** What the address says for a choice of when. */
function chosen(value: string): Record<string, string | null> {
  if (value !== BETWEEN) return { since: value, from: null, to: null };
  const now = Date.now();
  return { since: null, from: new Date(now - 3_600_000).toISOString(), to: new Date(now).toISOString() };
}

function Filters({ filter, change }: { filter: Filter; change(changes: Record<string, string | null>): void }) {
  const between = filter.from !== "" || filter.to !== "";
  return (
    <form className="line ends" role="search" aria-label="Filter executions" onSubmit={(event) => event.preventDefault()}>
      <label>
        Text in path, id or error
        <input type="search" value={filter.text} onChange={(event) => change({ text: event.target.value })} placeholder="timeout" />
      </label>
      <label>
        Path
        <input type="search" value={filter.path} onChange={(event) => change({ path: event.target.value })} placeholder="examples/" />
      </label>
      <label>
        Started
        <select value={between ? BETWEEN : filter.since} onChange={(event) => change(chosen(event.target.value))}>
          <option value="">Any time</option>
          {Object.entries(SPANS).map(([value, { name }]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
          <option value={BETWEEN}>Between two times</option>
        </select>
      </label>
      {between && (
        <>
          <label>
            From
            <input type="datetime-local" step="1" value={typed(filter.from)} onChange={(event) => change({ from: event.target.value, since: null })} />
          </label>
          <label>
            To
            <input type="datetime-local" step="1" value={typed(filter.to)} onChange={(event) => change({ to: event.target.value, since: null })} />
          </label>
        </>
      )}
      {isNarrow(filter) && (
        <button type="button" onClick={() => change({ status: null, path: null, text: null, since: null, from: null, to: null })}>
          Show all
        </button>
      )}
    </form>
  );
}

/** A time as the field for it writes it, in local time. */
function typed(said: string): string {
  const at = new Date(said);
  if (said === "" || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function Cancelling({ ids, done }: { ids: string[]; done(): void }) {
  const client = useQueryClient();
  const [sure, setSure] = useState(false);
  const cancel = useMutation({
    mutationFn: async () => {
      // One after the other: a hundred at once would take the places of other callers.
      const refused: string[] = [];
      for (const id of ids) {
        try {
          await send(`/api/executions/${id}/cancel`, { reason: "cancelled from the list", cascade: true });
        } catch (failure) {
          const why = shown(failure);
          // One that ended meanwhile needs no cancelling.
          if (why.status !== 409) refused.push(`${id}: ${why.message}`);
        }
      }
      if (refused.length > 0) throw new Error(`${refused.length} of ${ids.length} were not cancelled. ${refused[0]}`);
    },
    onSettled: () => {
      setSure(false);
      void client.invalidateQueries({ queryKey: ["executions"] });
    },
    onSuccess: done,
  });
  if (cancel.error) return <Failure of="Cancelling" error={cancel.error} retry={cancel.reset} />;
  if (ids.length === 0) return null;
  return (
    <div className="panel line" role="region" aria-label="Chosen executions">
      <span>{ids.length} running chosen</span>
      {sure ? (
        <>
          <button type="button" className="danger" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
            {cancel.isPending ? "Cancelling…" : `Yes, cancel ${ids.length}`}
          </button>
          <button type="button" onClick={() => setSure(false)}>
            No
          </button>
        </>
      ) : (
        <button type="button" className="danger" onClick={() => setSure(true)}>
          Cancel them
        </button>
      )}
      <button type="button" className="quiet" onClick={done}>
        Choose none
      </button>
    </div>
  );
}

interface ListProps {
  rows: Execution[];
  marked: ReadonlySet<string>;
  mark(marked: ReadonlySet<string>): void;
}

function List({ rows, marked, mark }: ListProps) {
  const list = useRef<HTMLDivElement>(null);
  const running = rows.filter((row) => row.status === "RUNNING");
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => 62,
    overscan: 12,
    scrollMargin: list.current?.offsetTop ?? 0,
    getItemKey: (place) => rows[place]?.execution_id ?? place,
  });
  const turn = (id: string, on: boolean) => {
    const next = new Set(marked);
    if (on) next.add(id);
    else next.delete(id);
    mark(next);
  };
  return (
    <div className="scroll" ref={list}>
      <div role="table" aria-label="Executions" aria-rowcount={rows.length + 1} className="executions">
        <div role="row" className="head">
          <span role="columnheader">
            {running.length === 0 && <span className="visually-hidden">Choose</span>}
            <input
              type="checkbox"
              aria-label="Choose all that run"
              title="Choose all that run"
              hidden={running.length === 0}
              checked={running.length > 0 && running.every((row) => marked.has(row.execution_id))}
              onChange={(event) => mark(new Set(event.target.checked ? running.map((row) => row.execution_id) : []))}
            />
          </span>
          <span role="columnheader">State</span>
          <span role="columnheader">Playbook</span>
          <span role="columnheader">Started</span>
          <span role="columnheader">Took</span>
          <span role="columnheader">Id</span>
        </div>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (!row) return null;
            return (
              <div
                key={item.key}
                ref={virtual.measureElement}
                data-index={item.index}
                role="row"
                aria-rowindex={item.index + 2}
                className="execution"
                style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${item.start - virtual.options.scrollMargin}px)` }}
              >
                <Row row={row} marked={marked.has(row.execution_id)} turn={turn} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Row({ row, marked, turn }: { row: Execution; marked: boolean; turn(id: string, on: boolean): void }) {
  const now = useNow(1000, row.status === "RUNNING");
  const took = row.duration_seconds === null ? now - Date.parse(row.started_at) : row.duration_seconds * 1000;
  return (
    <>
      <span role="cell">
        {row.status === "RUNNING" && (
          <input
            type="checkbox"
            aria-label={`Choose ${row.execution_id}`}
            checked={marked}
            onChange={(event) => turn(row.execution_id, event.target.checked)}
          />
        )}
      </span>
      <span role="cell">
        <Badge status={row.status} />
      </span>
      <span role="cell" className="what">
        <Link to={`/executions/${row.execution_id}`}>{row.path ?? row.execution_id}</Link>
        <span className="faint small"> v{row.version}</span>
        {row.parent_execution_id && (
          <Link className="small" to={`/executions/${row.parent_execution_id}`}>
            {" "}
            started by another
          </Link>
        )}
        {row.error !== null && <span className={`why small is-${row.status.toLowerCase()}`}>{row.error}</span>}
      </span>
      <span role="cell">
        <Time at={row.started_at} relative />
      </span>
      <span role="cell" className="took">
        {duration(took)}
      </span>
      <span role="cell" className="small">
        <Id id={row.execution_id} />
      </span>
    </>
  );
}

function Nothing({ filter, clear }: { filter: Filter; clear(): void }) {
  if (isNarrow(filter)) {
    return (
      <Empty title="No execution is like that">
        <p>
          <button type="button" onClick={clear}>
            Show all
          </button>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="Nothing ran yet">
      <p>
        An execution is one run of a playbook. Register one in the <Link to="/catalog">catalog</Link> and run it there, or with
      </p>
      <p>
        <code>noetl register playbook -f hello.yaml</code> and <code>noetl execute examples/hello</code>
      </p>
    </Empty>
  );
}

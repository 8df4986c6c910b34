// Workers: the commands each one holds, for how long, and the time of its last heartbeat.

import { useQuery } from "@tanstack/react-query";

import { field, isObject, stringify, text } from "../../api/json";
import { operations, type Load, type Runtime } from "../../api/operations";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Time, useNow } from "../../ui/time";
import { useReadings } from "./readings";

/** After so long without a word a worker counts as gone; the server goes by the same. */
const SILENT_MS = 90_000;

export function WorkersPart() {
  const workers = useQuery({ ...operations.workers(), refetchInterval: 5000 });
  const load = useQuery({ ...operations.load(), refetchInterval: 5000 });
  const error = workers.error ?? load.error;
  if (error) return <Failure of="The workers cannot be shown" error={error} retry={() => (workers.refetch(), load.refetch())} />;
  if (!workers.data || !load.data) return <Loading of="the workers" />;
  return (
    <div className="stack">
      <Waiting />
      <Table workers={workers.data} load={load.data} />
      {!load.data.complete && <p className="faint">Not all commands in flight were counted: there are too many.</p>}
    </div>
  );
}

/** What waits for a worker, by pool. */
function Waiting() {
  const { data, error, refetch } = useReadings();
  if (error && !data) return <Failure of="What waits for a worker cannot be told" error={error} retry={refetch} />;
  if (!data) return null;
  const pools = (data.at(-1)?.samples ?? []).filter((one) => one.name === "noetl_commands_pending" && one.value > 0);
  if (pools.length === 0) return <p className="faint">No command waits for a worker.</p>;
  return (
    <dl className="facts panel">
      {pools.map((one) => (
        <div key={one.labels["pool"]} className="fact">
          <dt>Pool {one.labels["pool"]}</dt>
          <dd>{one.value} commands wait for a worker</dd>
        </div>
      ))}
    </dl>
  );
}

function Table({ workers, load }: { workers: Runtime[]; load: Load }) {
  const now = useNow(5000);
  const known = new Set(workers.map((worker) => worker.name));
  const others = load.workers.filter((one) => !known.has(one.worker));
  if (workers.length === 0 && others.length === 0) {
    return (
      <Empty title="No remote workers">
        <p>
          <code>noetl dev</code> runs steps itself and is busy only while something runs. On another machine,{" "}
          <code>NOETL_SERVER_URL={location.origin} noetl worker</code> takes work from here.
        </p>
      </Empty>
    );
  }
  const held = new Map(load.workers.map((one) => [one.worker, one]));
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Workers">
      <table>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">State</th>
            <th scope="col">Load</th>
            <th scope="col">Oldest in hand</th>
            <th scope="col">Last heartbeat</th>
            <th scope="col">Says of itself</th>
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => {
            const silent = now - Date.parse(worker.heartbeat) > SILENT_MS;
            const hand = held.get(worker.name);
            return (
              <tr key={text(worker.runtime_id) ?? worker.name}>
                <td className="breaks">{worker.name}</td>
                <td>
                  <span className={`badge is-${silent ? "failed" : "completed"}`}>{silent ? "silent" : worker.status}</span>
                </td>
                <td>
                  <Held held={hand?.held ?? 0} capacity={worker.capacity} />
                </td>
                <td>{hand && <Time at={hand.oldest} relative />}</td>
                <td>
                  <Time at={worker.heartbeat} relative />
                </td>
                <td className="breaks small">{about(worker)}</td>
              </tr>
            );
          })}
          {others.map((one) => (
            <tr key={one.worker}>
              <td className="breaks">{one.worker}</td>
              <td>
                <span className="badge is-running">at work</span>
              </td>
              <td>{one.held}</td>
              <td>
                <Time at={one.oldest} relative />
              </td>
              <td />
              <td className="small">{one.worker === "local" ? "the worker in the server’s own process" : "not registered"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Held({ held, capacity }: { held: number; capacity: number | null }) {
  if (!capacity) return <>{held}</>;
  return (
    <>
      <meter min={0} max={capacity} value={Math.min(held, capacity)} aria-label="Load" /> {held} of {capacity}
    </>
  );
}

function about(worker: Runtime): string {
  const pool = text(field(worker.runtime, "pool")) ?? text(field(worker.labels, "pool"));
  const labels = isObject(worker.labels) ? Object.entries(worker.labels).map(([name, value]) => `${name}=${text(value) ?? stringify(value)}`) : [];
  return [pool && `pool ${pool}`, worker.uri, ...labels].filter(Boolean).join(", ");
}

// How the server, its database, its log and its stream are doing.

import { useQuery } from "@tanstack/react-query";

import { operations } from "../../api/operations";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { duration } from "../../ui/time";
import { levels, means, rates } from "./prometheus";
import { useReadings } from "./readings";
import { Sparkline } from "./sparkline";

const count = (value: number) => (value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toFixed(1));
const perSecond = (value: number) => `${count(value)}/s`;
const time = (seconds: number) => duration(seconds * 1000);

export function HealthPart() {
  return (
    <>
      <Standing />
      <Lines />
    </>
  );
}

function Standing() {
  const health = useQuery({ ...operations.health(), refetchInterval: 5000 });
  const machine = useQuery({ ...operations.machine(), refetchInterval: 5000 });
  const pool = useQuery({ ...operations.pool(), refetchInterval: 5000 });
  if (health.error) return <Failure of="The server does not say how it is" error={health.error} retry={health.refetch} />;
  if (!health.data) return <Loading of="how the server is" />;
  const { data } = health;
  return (
    <dl className="facts panel">
      <dt>Server</dt>
      <dd>
        {data.status}, version {data.version}, up {duration(data.uptime_seconds * 1000)}
      </dd>
      <dt>Database</dt>
      <dd>
        {data.database}
        {pool.data && pool.data.pool_max > 0 && (
          <>
            , {pool.data.pool_size - pool.data.pool_available} of {pool.data.pool_max} connections in use
            {pool.data.requests_waiting > 0 && `, ${pool.data.requests_waiting} waiting for one`}
          </>
        )}
      </dd>
      <dt>Event stream</dt>
      <dd>{data.nats === "not_configured" ? "no bus is set up; NOETL_NATS_URL names one" : data.nats}</dd>
      {machine.data && (
        <>
          <dt>Machine</dt>
          <dd>
            {machine.data.system.cpu_percent.toFixed(0)} % of its processors, {machine.data.system.memory_percent.toFixed(0)} % of its memory; the server has{" "}
            {machine.data.process.memory_rss_mb.toFixed(0)} MB
          </dd>
        </>
      )}
    </dl>
  );
}

function Lines() {
  const { data, error, refetch } = useReadings();
  if (error) return <Failure of="The measurements cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the measurements" />;
  return (
    <section aria-label="The last five minutes" className="sparks">
      <Sparkline name="Events" about="written to logs of executions" values={rates(data, "noetl_journal_events_total")} shown={perSecond} />
      <Sparkline name="Commit" about="how long the database takes for one batch of events" values={means(data, "noetl_journal_commit_duration_seconds")} shown={time} />
      <Sparkline name="Commands waiting" about="for a worker; when this grows, add workers" values={levels(data, "noetl_commands_pending")} shown={count} />
      <Sparkline name="Writes" about="requests that change something" values={rates(data, "noetl_write_requests_total")} shown={perSecond} />
      <Sparkline name="Starts" about="executions that were asked for" values={rates(data, "noetl_execute_outcomes_total")} shown={perSecond} />
      <Sparkline name="Outbox" about="events that wait to be published" values={levels(data, "noetl_outbox_pending")} shown={count} />
      <Sparkline
        name="Stream behind"
        about="age of the oldest event that is not published; when this grows, look at the bus"
        values={levels(data, "noetl_event_stream_oldest_unpublished_seconds")}
        shown={time}
      />
      <Sparkline name="Conflicts" about="appends that met another server’s and were decided again" values={rates(data, "noetl_journal_conflicts_total")} shown={perSecond} />
      <Sparkline name="Leases lost" about="workers that went away with work in their hands" values={rates(data, "noetl_command_leases_ended_total")} shown={perSecond} />
    </section>
  );
}

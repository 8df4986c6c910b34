// What the execution knew at the shown moment: its workload, what it set, what its steps came to.

import { useQuery } from "@tanstack/react-query";

import type { Json } from "../../api/json";
import { field } from "../../api/json";
import type { Moment } from "../../model/moment";
import type { Assignment, Story } from "../../model/story";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { JsonView } from "../../ui/json-view";
import { wholeEvent } from "./event";

export function Context({ id, moment, workload, story }: { id: string; moment: Moment; workload: Json; story: Story }) {
  const results = story.commands.filter((one) => one.doneSeq !== null && one.doneSeq <= moment.seq && one.item === null);
  const newest = [...new Map(results.map((one) => [one.step, one])).values()];
  return (
    <div className="stack">
      <div>
        <h3>Workload</h3>
        <JsonView value={workload} label="the workload" />
      </div>
      <div>
        <h3>Context at event {moment.seq}</h3>
        {moment.context.size === 0 ? (
          <p className="faint">Nothing was set up to this moment.</p>
        ) : (
          [...moment.context.values()].map((one) => <Assigned key={one.key} id={id} one={one} />)
        )}
      </div>
      <div>
        <h3>Results of steps at event {moment.seq}</h3>
        {newest.length === 0 && <p className="faint">No step had a result yet.</p>}
        {newest.map((one) => (
          <details key={one.step}>
            <summary>{one.step}</summary>
            <ResultOf id={id} seq={one.doneSeq} />
          </details>
        ))}
      </div>
    </div>
  );
}

function Assigned({ id, one }: { id: string; one: Assignment }) {
  return (
    <div className="assigned">
      <p className="small">
        <code>ctx.{one.key}</code> <span className="faint">set by {one.step} in event {one.seq}</span>
      </p>
      {/* A large value is null in the log that is followed. */}
      {one.value === null ? <ValueOf id={id} one={one} /> : <JsonView value={one.value} label={one.key} />}
    </div>
  );
}

function ValueOf({ id, one }: { id: string; one: Assignment }) {
  const { data, error, refetch } = useQuery(wholeEvent(id, one.seq));
  if (error) return <Failure of="The value cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the value" />;
  return <JsonView value={field(data.result, "context", "values", one.key) ?? null} label={one.key} />;
}

function ResultOf({ id, seq }: { id: string; seq: number | null }) {
  const { data, error, refetch } = useQuery(wholeEvent(id, seq));
  if (error) return <Failure of="The result cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the result" />;
  return <JsonView value={field(data.result, "context", "data") ?? null} label="the result" />;
}

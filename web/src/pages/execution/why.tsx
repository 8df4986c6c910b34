// Why it does not move, or why it ended: said before anybody has to look.

import { useQuery, keepPreviousData } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { queries } from "../../api/queries";
import type { Wait } from "../../api/types";
import { Link } from "../../shell/router";
import { Failure } from "../../ui/failure";
import { Time } from "../../ui/time";
import { clock, useZone, type Zone } from "../../ui/zone";

interface Props {
  id: string;
  isOver: boolean;
  /** Grows while the log does. */
  version: number;
  choose(step: string): void;
}

export function WhyBanner({ id, isOver, version, choose }: Props) {
  const zone = useZone();
  // The answer changes with the log, and is asked for when that rests.
  const [rested, setRested] = useState(version);
  useEffect(() => {
    const timer = setTimeout(() => setRested(version), 700);
    return () => clearTimeout(timer);
  }, [version]);
  const query = queries.why(id);
  const { data, error, refetch } = useQuery({ ...query, queryKey: [...query.queryKey, isOver, rested], placeholderData: keepPreviousData });
  if (error && !data) return <Failure of={isOver ? "Why it ended cannot be told" : "What it waits for cannot be told"} error={error} retry={refetch} />;
  if (!data) return null;
  const failed = data.status === "FAILED";
  const step = data.ended?.step;
  return (
    <section className={failed ? "failure why" : "panel why"} aria-label="Why">
      <div className="why-line">
        <p>
          <strong>{data.ended ? "Why it ended:" : "What it waits for:"}</strong> {timed(data.summary, zone)}
        </p>
        {step && (
          <button type="button" onClick={() => choose(step)}>
            Open step {step}
          </button>
        )}
      </div>
      {data.waits.length > 0 && (
        <ul>
          {data.waits.slice(0, 8).map((wait, place) => (
            <Waiting key={place} wait={wait} summary={data.summary} choose={choose} />
          ))}
          {(data.waits.length > 8 || data.more > 0) && <li>and {data.waits.length - Math.min(8, data.waits.length) + data.more} more</li>}
        </ul>
      )}
    </section>
  );
}

function Waiting({ wait, summary, choose }: { wait: Wait; summary: string; choose(step: string): void }) {
  const zone = useZone();
  const isAnswer = wait.kind === "answer";
  return (
    <li>
      {/* What was said above is not said again. */}
      {wait.what !== summary ? `${timed(wait.what, zone)}, ` : "Waiting "}
      since <Time at={wait.since} relative />.{" "}
      {!isAnswer && <>What would move it: {timed(wait.would_move_it, zone)}. </>}
      <button type="button" onClick={() => choose(wait.step)}>
        {isAnswer ? `Answer in step ${wait.step}` : `Open step ${wait.step}`}
      </button>{" "}
      {wait.child_execution_id && <Link to={`/executions/${wait.child_execution_id}`}>Open what it waits for</Link>}
    </li>
  );
}

/** A sentence of the server with its times as the reader wants them. */
function timed(sentence: string, zone: Zone): string {
  return sentence.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (at) => clock(at, zone).slice(0, 19));
}

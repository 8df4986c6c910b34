// Two moments side by side, and what is different at the later one.

import { useMemo } from "react";

import { stringify, type Json } from "../../api/json";
import { differences, momentAt, type Difference, type Moment } from "../../model/moment";
import type { Story } from "../../model/story";
import { Badge } from "../../ui/badge";
import { Guard } from "../../ui/failure";
import { Time } from "../../ui/time";
import { Graph } from "./graph";

interface Props {
  workflow: Json | undefined;
  story: Story;
  version: number;
  moment: Moment;
  other: number;
  chosen: string | null;
  choose(step: string): void;
}

export function Compare({ workflow, story, version, moment, other, chosen, choose }: Props) {
  const [a, b] = useMemo(() => {
    const second = momentAt(story, other);
    return second.seq <= moment.seq ? [second, moment] : [moment, second];
  }, [story, version, other, moment]);
  const found = useMemo(() => differences(a, b), [a, b]);
  return (
    <section aria-label="Two moments compared" className="panel compare">
      <h2>Two moments</h2>
      <div className="pair">
        {[a, b].map((one, place) => (
          <figure key={place} aria-label={place === 0 ? "The earlier moment" : "The later moment"}>
            <figcaption>
              <Head moment={one} />
            </figcaption>
            <Guard of="The graph">
              <Graph workflow={workflow} story={story} version={version} moment={one} chosen={chosen} choose={choose} />
            </Guard>
          </figure>
        ))}
      </div>
      <h3>What changed between them</h3>
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">Event {a.seq}</th>
              <th scope="col">Event {b.seq}</th>
            </tr>
          </thead>
          <tbody>
            {found.map((one) => (
              <tr key={`${one.what} ${one.name}`}>
                <th scope="row">{named(one)}</th>
                <td>{said(one.before)}</td>
                <td>{said(one.after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.length === 0 && <p className="faint">Nothing is different. Move the slider to choose the other moment.</p>}
    </section>
  );
}

function Head({ moment }: { moment: Moment }) {
  return (
    <>
      Event {moment.seq} <Badge status={moment.state} /> <Time at={new Date(moment.at).toISOString()} />
    </>
  );
}

function named(one: Difference): string {
  if (one.what === "step") return `step ${one.name}`;
  return one.what === "context" ? `ctx.${one.name}` : one.name;
}

function said(value: Json | undefined) {
  if (value === undefined) return <span className="faint">not there</span>;
  return typeof value === "string" ? value : <code>{stringify(value)}</code>;
}

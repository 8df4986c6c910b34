// When executions started, as a small chart. A click on a bar shows those of its time.

import { useQuery } from "@tanstack/react-query";

import { queries } from "../../api/queries";
import type { Activity } from "../../api/types";
import { Failure } from "../../ui/failure";
import { roundly } from "../../ui/time";
import { both, clock, useZone } from "../../ui/zone";

const WIDTH = 600;
const HEIGHT = 44;
const KINDS = ["completed", "failed", "cancelled", "running"] as const;

export function ActivityChart({ seconds, choose }: { seconds: number; choose(from: Date, to: Date): void }) {
  const { data, error, refetch } = useQuery({ ...queries.activity(seconds, 60), refetchInterval: 30_000 });
  const zone = useZone();
  if (error && !data) return <Failure of="When they started cannot be shown" error={error} retry={refetch} />;
  if (!data) return <div className="activity" aria-hidden="true" />;
  const sums = data.stretches.map((one) => KINDS.reduce((sum, kind) => sum + one[kind], 0));
  const most = Math.max(1, ...sums);
  const total = sums.reduce((sum, one) => sum + one, 0);
  const failed = data.stretches.reduce((sum, one) => sum + one.failed, 0);
  return (
    <figure className="activity">
      <figcaption className="small">
        <span>
          <strong>{total}</strong> started, <strong className={failed > 0 ? "bad" : ""}>{failed}</strong> failed
        </span>
        {total > 0 && (
          <span className="faint">
            at most {most} in {roundly(data.stretch_seconds * 1000)}
          </span>
        )}
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${total} executions started since ${clock(data.from, zone)}, ${failed} of them failed; at most ${most} within ${data.stretch_seconds} seconds`}
      >
        {data.stretches.map((one, place) => (
          <Bar key={place} data={data} place={place} one={one} most={most} choose={choose} />
        ))}
      </svg>
      <p className="line small faint ticks" aria-hidden="true">
        <span>{clock(data.from, zone).slice(0, 16)}</span>
        <span className="push">now</span>
      </p>
    </figure>
  );
}

interface BarProps {
  data: Activity;
  place: number;
  one: Activity["stretches"][number];
  most: number;
  choose(from: Date, to: Date): void;
}

function Bar({ data, place, one, most, choose }: BarProps) {
  const width = WIDTH / data.stretches.length;
  const from = new Date(Date.parse(data.from) + place * data.stretch_seconds * 1000);
  const to = new Date(from.getTime() + data.stretch_seconds * 1000);
  let below = 0;
  return (
    <g className="bar" onClick={() => choose(from, to)}>
      <title>{`${both(from.toISOString())}: ${KINDS.map((kind) => `${one[kind]} ${kind}`).join(", ")}`}</title>
      <rect className="reach" x={place * width} y={0} width={width} height={HEIGHT} />
      {KINDS.map((kind) => {
        const height = one[kind] === 0 ? 0 : Math.max(2, (one[kind] / most) * (HEIGHT - 2));
        below += height;
        return (
          <rect key={kind} className={`fill-${kind}`} x={place * width + 0.5} y={HEIGHT - below} width={Math.max(1, width - 1)} height={height} />
        );
      })}
    </g>
  );
}

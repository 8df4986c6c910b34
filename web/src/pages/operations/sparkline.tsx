// A number and how it went lately.

import { useId } from "react";

interface Props {
  name: string;
  /** Explanation shown to the user. */
  about: string;
  values: (number | null)[];
  shown(value: number): string;
}

const WIDTH = 220;
const HEIGHT = 44;

export function Sparkline({ name, about, values, shown }: Props) {
  const id = useId();
  const known = values.filter((value): value is number => value !== null);
  const last = values.findLast((value) => value !== null) ?? null;
  const most = Math.max(...known, 0);
  return (
    <div className="panel spark" role="group" aria-labelledby={id} title={about}>
      <h3 id={id}>{name}</h3>
      <p className="figure">{last === null ? "–" : shown(last)}</p>
      {known.length > 1 ? (
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`lately up to ${shown(most)}`}>
          {lines(values, most).map((points, place) => (
            <g key={place}>
              <polygon points={`${points} ${points.split(" ").at(-1)?.split(",")[0]},${HEIGHT} ${points.split(",")[0]},${HEIGHT}`} />
              <polyline points={points} vectorEffect="non-scaling-stroke" />
            </g>
          ))}
        </svg>
      ) : (
        <p className="small faint">A line appears as it is measured.</p>
      )}
      <p className="small faint">{about}</p>
    </div>
  );
}

/** The points of each stretch without a gap; the newest value is at the right. */
export function lines(values: (number | null)[], most: number): string[] {
  const stretches: string[][] = [[]];
  const step = WIDTH / Math.max(values.length - 1, 1);
  values.forEach((value, place) => {
    if (value === null) stretches.push([]);
    else {
      const y = HEIGHT - 2 - (most > 0 ? (value / most) * (HEIGHT - 4) : 0);
      stretches.at(-1)?.push(`${(place * step).toFixed(1)},${y.toFixed(1)}`);
    }
  });
  return stretches.filter((points) => points.length > 1).map((points) => points.join(" "));
}

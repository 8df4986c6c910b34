// Times: how long ago, or when.

import { useEffect, useState } from "react";

import { both, clock, useZone } from "./zone";

/** The time, read again every so often. */
export function useNow(every = 1000, runs = true): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!runs) return;
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every, runs]);
  return now;
}

/** A length of time as people say it. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  if (ms < 0) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return `${minutes} min ${seconds % 60} s`;
}

/** The same without what is nought at its end: `1 min`, `15 s`. */
export function roundly(ms: number): string {
  return duration(ms).replace(".0 s", " s").replace(/(min|h|d) 0 (s|min|h)$/, "$1");
}

/** How long ago. */
export function ago(ms: number): string {
  if (ms < 1500) return "now";
  return `${roundly(ms < 60_000 ? Math.floor(ms / 1000) * 1000 : ms)} ago`;
}

/** A moment, in local time or UTC as the reader chose; pointing at it tells both. */
export function Time({ at, relative = false }: { at: string; relative?: boolean }) {
  // What is young is counted by the second, like the lengths of time beside it.
  const [isYoung, setYoung] = useState(true);
  const now = useNow(isYoung ? 1000 : 10_000, relative);
  const old = now - Date.parse(at) > 60_000;
  useEffect(() => setYoung(!old), [old]);
  const zone = useZone();
  return (
    <time dateTime={at} title={both(at)}>
      {relative ? ago(now - Date.parse(at)) : clock(at, zone)}
    </time>
  );
}

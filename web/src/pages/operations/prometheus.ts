// The text that `/metrics` answers with, read.

/** One line: a name, its labels, its value. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"\s*,?\s*/gy;

/** Every sample of a text. Lines that cannot be read are left out. */
export function samples(text: string): Sample[] {
  const found: Sample[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [, name, labels, value] = LINE.exec(line.trim()) ?? [];
    if (name === undefined || value === undefined) continue;
    const number = numeric(value);
    const read = labelled(labels ?? "");
    if (number !== null && read !== null) found.push({ name, labels: read, value: number });
  }
  return found;
}

function numeric(text: string): number | null {
  if (text === "NaN") return Number.NaN;
  if (/^[+-]?Inf$/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  const number = Number(text);
  return Number.isNaN(number) ? null : number;
}

function labelled(text: string): Record<string, string> | null {
  const labels: Record<string, string> = {};
  let end = 0;
  LABEL.lastIndex = 0;
  for (let match = LABEL.exec(text); match; match = LABEL.exec(text)) {
    labels[match[1] ?? ""] = (match[2] ?? "").replace(/\\(.)/g, (_, sign: string) => (sign === "n" ? "\n" : sign));
    end = LABEL.lastIndex;
  }
  return end === text.length ? labels : null;
}

/** All samples of a name added up; nothing when there are none. */
export function total(all: Sample[], name: string): number | null {
  let sum: number | null = null;
  for (const one of all) if (one.name === name && Number.isFinite(one.value)) sum = (sum ?? 0) + one.value;
  return sum;
}

/** What was read at a time. */
export interface Reading {
  at: number;
  samples: Sample[];
}

/** Growth of a counter per second between readings. A restarted server resets its counters; then there is no rate. */
export function rates(readings: Reading[], name: string): (number | null)[] {
  return between(readings, (before, now, seconds) => {
    const [was, is] = [total(before.samples, name), total(now.samples, name)];
    return was === null || is === null || is < was ? null : (is - was) / seconds;
  });
}

/** The mean of what a histogram measured between readings; nothing while nothing was measured. */
export function means(readings: Reading[], name: string): (number | null)[] {
  return between(readings, (before, now) => {
    const grew = (part: string) => (total(now.samples, name + part) ?? 0) - (total(before.samples, name + part) ?? 0);
    const [sum, count] = [grew("_sum"), grew("_count")];
    return count > 0 && sum >= 0 ? sum / count : null;
  });
}

/** What a gauge was at each reading. */
export function levels(readings: Reading[], name: string): (number | null)[] {
  return readings.map((reading) => total(reading.samples, name));
}

function between(readings: Reading[], of: (before: Reading, now: Reading, seconds: number) => number | null): (number | null)[] {
  return readings.slice(1).map((now, place) => {
    const before = readings[place] as Reading;
    const seconds = (now.at - before.at) / 1000;
    return seconds > 0 ? of(before, now, seconds) : null;
  });
}

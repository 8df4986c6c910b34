// What changed between two texts, line by line.

export interface Change {
  kind: "same" | "gone" | "new";
  text: string;
  /** Its number in the older and in the newer text, from 1. */
  older: number | null;
  newer: number | null;
}

/** Beyond this many changed lines, a shortest diff takes too long to compute and is too long to read. */
const CHANGES_MAX = 1000;

/** The lines of both texts, in order. */
export function difference(older: string, newer: string): Change[] {
  const [a, b] = [older.split("\n"), newer.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const changes: Change[] = [];
  const same = (i: number, j: number) => changes.push({ kind: "same", text: a[i] ?? "", older: i + 1, newer: j + 1 });
  const gone = (i: number) => changes.push({ kind: "gone", text: a[i] ?? "", older: i + 1, newer: null });
  const fresh = (j: number) => changes.push({ kind: "new", text: b[j] ?? "", older: null, newer: j + 1 });
  for (let i = 0; i < start; i += 1) same(i, i);
  let [i, j] = [start, start];
  for (const [x, y] of common(a.slice(start, endA), b.slice(start, endB))) {
    while (i < start + x) gone(i++);
    while (j < start + y) fresh(j++);
    same(i++, j++);
  }
  while (i < endA) gone(i++);
  while (j < endB) fresh(j++);
  for (; i < a.length; i += 1, j += 1) same(i, j);
  return changes;
}

/** Pairs of equal lines of a shortest account: greedy paths, one more change at a time. */
function common(a: string[], b: string[]): [number, number][] {
  const most = Math.min(a.length + b.length, CHANGES_MAX);
  const paths: Map<number, number>[] = [];
  let furthest = new Map<number, number>([[1, 0]]);
  for (let changes = 0; changes <= most; changes += 1) {
    const next = new Map(furthest);
    paths.push(furthest);
    for (let k = -changes; k <= changes; k += 2) {
      const down = k === -changes || (k !== changes && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1));
      let x = down ? (furthest.get(k + 1) ?? 0) : (furthest.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return walked(paths, a.length, b.length);
    }
    furthest = next;
  }
  return [];
}

/** The equal pairs on the way back from the end. */
function walked(paths: Map<number, number>[], endX: number, endY: number): [number, number][] {
  const pairs: [number, number][] = [];
  let [x, y] = [endX, endY];
  for (let changes = paths.length - 1; changes >= 0; changes -= 1) {
    const before = paths[changes] ?? new Map<number, number>();
    const k = x - y;
    const down = k === -changes || (k !== changes && (before.get(k - 1) ?? -1) < (before.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const startX = before.get(from) ?? 0;
    const startY = startX - from;
    while (x > startX && y > startY && x > 0 && y > 0) {
      [x, y] = [x - 1, y - 1];
      pairs.push([x, y]);
    }
    [x, y] = [startX, startY];
  }
  return pairs.reverse();
}

/** Runs of changes with some lines around them; what is left out is only counted. */
export function folded(changes: Change[], around = 3): (Change | number)[] {
  const near = new Set<number>();
  changes.forEach((change, place) => {
    if (change.kind === "same") return;
    for (let at = place - around; at <= place + around; at += 1) near.add(at);
  });
  const shown: (Change | number)[] = [];
  let hidden = 0;
  changes.forEach((change, place) => {
    if (!near.has(place)) hidden += 1;
    else {
      if (hidden > 0) shown.push(hidden);
      hidden = 0;
      shown.push(change);
    }
  });
  if (hidden > 0) shown.push(hidden);
  return shown;
}

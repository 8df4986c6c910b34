// Bars of a timeline: one for each piece of work, those at the same time below each other.

import { isOver, type Command, type State, type Story } from "./story";

export interface Bar {
  command: Command;
  step: string;
  from: number;
  /** When it was taken by a worker. */
  taken: number | null;
  /** When it was over; nothing while it is not. */
  to: number | null;
  state: State;
  lane: number;
}

export interface Group {
  step: string;
  /** Its first lane, and how many it has. */
  lane: number;
  lanes: number;
}

export interface Lanes {
  bars: Bar[];
  /** The bars of each lane, by when they begin. */
  byLane: Bar[][];
  groups: Group[];
  from: number;
  to: number;
}

/** Every piece of work up to a place of the log. */
export function lanesOf(story: Story, seq: number, now: number): Lanes {
  const end = story.end !== null && story.end.seq <= seq ? story.end.at : null;
  const bySteps = new Map<string, Bar[]>();
  let to = end ?? story.startAt;
  for (const command of story.commands) {
    if (command.issuedSeq > seq) break;
    const bar = barOf(command, seq, end);
    const known = bySteps.get(bar.step);
    if (known) known.push(bar);
    else bySteps.set(bar.step, [bar]);
    to = Math.max(to, bar.to ?? now);
  }
  const byLane: Bar[][] = [];
  const groups: Group[] = [];
  for (const [step, bars] of bySteps) {
    const lane = byLane.length;
    packed(bars, byLane);
    groups.push({ step, lane, lanes: byLane.length - lane });
  }
  return { bars: byLane.flat(), byLane, groups, from: story.startAt, to: Math.max(to, story.startAt + 1) };
}

function barOf(command: Command, seq: number, end: number | null): Bar {
  const first = command.changes[0];
  const bar: Bar = { command, step: command.step, from: first?.at ?? 0, taken: null, to: null, state: "pending", lane: 0 };
  for (const change of command.changes) {
    if (change.seq > seq) break;
    bar.state = change.state;
    if (bar.taken === null && change.state !== "pending") bar.taken = change.at;
    bar.to = isOver(change.state) ? change.at : null;
  }
  if (bar.to === null && end !== null) {
    bar.to = end;
    bar.state = "cancelled";
  }
  return bar;
}

/** Puts bars that begin one after the other into the first lanes that are free then. */
function packed(bars: Bar[], byLane: Bar[][]): void {
  // Lanes that are taken, with the one that is free first on top.
  const heap: { to: number; lane: number }[] = [];
  for (const bar of bars) {
    const free = heap[0];
    const to = bar.to ?? Infinity;
    if (free && free.to <= bar.from) {
      bar.lane = free.lane;
      free.to = to;
      sink(heap);
    } else {
      bar.lane = byLane.length;
      byLane.push([]);
      heap.push({ to, lane: bar.lane });
      rise(heap);
    }
    byLane[bar.lane]?.push(bar);
  }
}

type Heap = { to: number; lane: number }[];

const before = (a: Heap[number], b: Heap[number]) => a.to < b.to || (a.to === b.to && a.lane < b.lane);

function sink(heap: Heap): void {
  let place = 0;
  for (;;) {
    const [left, right] = [2 * place + 1, 2 * place + 2];
    let least = place;
    for (const child of [left, right]) {
      const [one, other] = [heap[child], heap[least]];
      if (one && other && before(one, other)) least = child;
    }
    if (least === place) return;
    swap(heap, place, least);
    place = least;
  }
}

function rise(heap: Heap): void {
  let place = heap.length - 1;
  while (place > 0) {
    const parent = (place - 1) >> 1;
    const [one, other] = [heap[place], heap[parent]];
    if (!one || !other || !before(one, other)) return;
    swap(heap, place, parent);
    place = parent;
  }
}

function swap(heap: Heap, a: number, b: number): void {
  const [one, other] = [heap[a], heap[b]];
  if (one && other) [heap[a], heap[b]] = [other, one];
}

/** The most pieces of work that were in hands at the same time. */
export function atOnce(bars: readonly Bar[], now: number): number {
  const begun: number[] = [];
  const over: number[] = [];
  for (const bar of bars) {
    if (bar.taken === null) continue;
    begun.push(bar.taken);
    over.push(bar.to ?? now);
  }
  begun.sort((a, b) => a - b);
  over.sort((a, b) => a - b);
  let [most, ended] = [0, 0];
  begun.forEach((at, place) => {
    while ((over[ended] ?? Infinity) <= at && ended < place) ended += 1;
    most = Math.max(most, place + 1 - ended);
  });
  return most;
}

/** The first bar of a lane that is not over before a time. */
export function firstAfter(lane: Bar[], time: number): number {
  let [low, high] = [0, lane.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((lane[middle]?.to ?? Infinity) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

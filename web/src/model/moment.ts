// How an execution stood at one place of its log.

import type { Json } from "../api/json";
import { changeAt, isOver, type Assignment, type Command, type State, type Story, type Visit } from "./story";

/** One step at a moment. */
export interface StepState {
  step: string;
  state: State;
  visits: number;
  /** The newest visit. */
  visit: Visit;
  /** The most attempts at one piece of its work. */
  attempts: number;
  loop: { total: number | null; done: number; failed: number; running: number } | null;
  error: string | null;
}

export interface ArcState {
  taken: number;
  notTaken: number;
}

export interface Moment {
  seq: number;
  /** When the event at that place was decided. */
  at: number;
  state: State;
  steps: Map<string, StepState>;
  /** By `from` and `to` with a line feed between them, which no name of a step holds. */
  arcs: Map<string, ArcState>;
  context: Map<string, Assignment>;
  counts: Record<State, number> & { events: number; steps: number };
}

export const arcKey = (from: string, to: string): string => `${from}\n${to}`;

export function momentAt(story: Story, place: number): Moment {
  const seq = Math.max(0, Math.min(place, story.last));
  const ended = story.end !== null && story.end.seq <= seq ? story.end : null;
  const steps = stepsAt(story, seq, ended !== null);
  const counts: Moment["counts"] = {
    pending: 0, running: 0, waiting: 0, completed: 0, failed: 0, cancelled: 0, events: seq, steps: steps.size,
  };
  for (const command of story.commands) {
    if (command.issuedSeq > seq) break;
    const state = changeAt(command, seq)?.state;
    if (state) counts[ended && !isOver(state) ? "cancelled" : state] += 1;
  }
  return {
    seq,
    at: Date.parse(story.events[indexOf(story, seq)]?.timestamp ?? "") || story.startAt,
    state: ended?.state ?? (seq === 0 ? "pending" : "running"),
    steps,
    arcs: arcsAt(story, seq),
    context: contextAt(story, seq),
    counts,
  };
}

/** Where the event with this place stands in the list; places are 1, 2, 3 without gaps in our own logs. */
export function indexOf(story: Story, seq: number): number {
  const { events } = story;
  if (events[seq - 1]?.seq === seq) return seq - 1;
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.seq ?? Infinity) <= seq) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function stepsAt(story: Story, seq: number, ended: boolean): Map<string, StepState> {
  const steps = new Map<string, StepState>();
  for (const visit of story.visits) {
    if (visit.enterSeq > seq) break;
    const known = steps.get(visit.step);
    const left = visit.exitSeq !== null && visit.exitSeq <= seq;
    steps.set(visit.step, {
      step: visit.step,
      state: left ? (visit.exitState ?? "completed") : ended ? "cancelled" : "pending",
      visits: (known?.visits ?? 0) + 1,
      visit,
      attempts: 0,
      loop: null,
      error: left ? visit.error : null,
    });
  }
  for (const loop of story.loops) {
    const step = steps.get(loop.step);
    if (loop.seq > seq) break;
    if (step && step.visit.number === loop.visit) step.loop = { total: loop.size, done: 0, failed: 0, running: 0 };
  }
  for (const command of story.commands) {
    if (command.issuedSeq > seq) break;
    const step = steps.get(command.step);
    if (step && step.visit.number === command.visit) counted(step, command, seq);
  }
  return steps;
}

/** What one command says about the step it is of. */
function counted(step: StepState, command: Command, seq: number): void {
  const state = changeAt(command, seq)?.state;
  if (!state) return;
  step.attempts = Math.max(step.attempts, command.attempt);
  if (step.loop && command.item !== null) {
    if (state === "completed") step.loop.done += 1;
    else if (state === "failed") step.loop.failed += 1;
    else if (!isOver(state)) step.loop.running += 1;
  }
  const open = step.visit.exitSeq === null || step.visit.exitSeq > seq;
  if (open && step.state !== "cancelled") {
    if (state === "failed") step.error = command.error;
    // A running command outweighs a parked one, which outweighs a pending one.
    if (state === "running" || step.state === "running") step.state = "running";
    else if (state === "waiting" || step.state === "waiting") step.state = "waiting";
    else if (isOver(state)) step.state = step.loop ? "running" : step.state;
  }
}

function arcsAt(story: Story, seq: number): Map<string, ArcState> {
  const arcs = new Map<string, ArcState>();
  const count = (from: string, to: string, what: keyof ArcState) => {
    const key = arcKey(from, to);
    const known = arcs.get(key) ?? { taken: 0, notTaken: 0 };
    known[what] += 1;
    arcs.set(key, known);
  };
  for (const visit of story.visits) {
    if (visit.enterSeq > seq) break;
    if (visit.exitSeq === null || visit.exitSeq > seq) continue;
    visit.taken.forEach((to) => count(visit.step, to, "taken"));
    visit.notTaken.forEach((to) => count(visit.step, to, "notTaken"));
  }
  return arcs;
}

function contextAt(story: Story, seq: number): Map<string, Assignment> {
  const context = new Map<string, Assignment>();
  for (const one of story.assignments) {
    if (one.seq > seq) break;
    context.set(one.key, one);
  }
  return context;
}

/** One thing that differs between two moments. */
export interface Difference {
  what: "step" | "context" | "count";
  name: string;
  before: Json | undefined;
  after: Json | undefined;
}

/** What is different at the second moment. */
export function differences(a: Moment, b: Moment): Difference[] {
  const found: Difference[] = [];
  const compare = (what: Difference["what"], name: string, before: Json | undefined, after: Json | undefined) => {
    if (JSON.stringify(before) !== JSON.stringify(after)) found.push({ what, name, before, after });
  };
  for (const name of new Set([...a.steps.keys(), ...b.steps.keys()])) {
    compare("step", name, said(a.steps.get(name)), said(b.steps.get(name)));
  }
  for (const name of new Set([...a.context.keys(), ...b.context.keys()])) {
    const [before, after] = [a.context.get(name), b.context.get(name)];
    // A large value is null in a brief log, so that its event tells whether it is another.
    const same = before?.seq === after?.seq;
    if (!same) compare("context", name, before?.value ?? before?.seq, after?.value ?? after?.seq);
  }
  for (const name of Object.keys(a.counts) as (keyof Moment["counts"])[]) compare("count", name, a.counts[name], b.counts[name]);
  return found;
}

function said(step: StepState | undefined): Json | undefined {
  if (!step) return undefined;
  const parts = [step.state as string];
  if (step.visits > 1) parts.push(`visit ${step.visits}`);
  if (step.loop) parts.push(`${step.loop.done + step.loop.failed} of ${step.loop.total ?? "?"} items`);
  if (step.attempts > 1) parts.push(`attempt ${step.attempts}`);
  return parts.join(", ");
}

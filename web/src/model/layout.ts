// Where the steps of a playbook stand and how the arcs between them run.

import { Graph, layout } from "@dagrejs/dagre";

import type { Arc, Step } from "./graph";

/** From top to bottom, or from left to right. */
export type Direction = "TB" | "LR";

interface Point {
  x: number;
  y: number;
}

export interface PlacedStep extends Step, Point {
  width: number;
  height: number;
}

export interface PlacedArc extends Arc {
  /** The points its line goes through. */
  points: Point[];
  /** Its condition, cut to what fits, and where the middle of that stands; nothing without one. */
  label: (Point & { text: string }) | null;
}

export interface Plan {
  direction: Direction;
  steps: PlacedStep[];
  arcs: PlacedArc[];
  width: number;
  height: number;
}

const WIDTH = 176;
const HEIGHT = 56;
/** A step that loops has a line more, with how far it is. */
const LOOP_HEIGHT = 74;
/** Signs of a condition that are shown, and how wide one is drawn about. */
const LABEL_MOST = 24;
const LABEL_SIGN = 6.2;

/** A place for everything. Arcs to steps that are not there, and repeats, are left out. */
export function planOf(steps: Step[], arcs: Arc[], direction: Direction = "TB"): Plan {
  const graph = new Graph();
  graph.setGraph({ rankdir: direction, nodesep: direction === "TB" ? 32 : 20, ranksep: direction === "TB" ? 40 : 48, edgesep: 16, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const step of steps) graph.setNode(step.name, { width: WIDTH, height: step.loops ? LOOP_HEIGHT : HEIGHT });
  const known = new Set(steps.map((step) => step.name));
  const seen = new Set<string>();
  const kept = arcs.filter(({ from, to, when }) => {
    const key = `${from}\n${to}`;
    if (!known.has(from) || !known.has(to) || seen.has(key)) return false;
    seen.add(key);
    const text = condition(when);
    graph.setEdge(from, to, text === null ? {} : { width: text.length * LABEL_SIGN + 10, height: 18, labelpos: "c" });
    return true;
  });
  layout(graph);
  const placed = steps.map((step) => {
    const { x = 0, y = 0, width = WIDTH, height = HEIGHT } = (graph.node(step.name) ?? {}) as Partial<Point & { width: number; height: number }>;
    return { ...step, x: x - width / 2, y: y - height / 2, width, height };
  });
  const by = new Map(placed.map((step) => [step.name, step]));
  const ways = kept.map((arc) => {
    const { points = [], x, y } = (graph.edge(arc.from, arc.to) ?? {}) as { points?: Point[] } & Partial<Point>;
    const text = condition(arc.when);
    return { ...arc, points: straightened(points, by.get(arc.from), by.get(arc.to), direction), label: text === null || x === undefined || y === undefined ? null : { x, y, text } };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { direction, steps: placed, arcs: ways, width, height };
}

/** The plan of the two directions that is larger once it is made to fit a room; from top to bottom when both fit. */
export function planFor(steps: Step[], arcs: Arc[], room: { width: number; height: number }): Plan {
  const down = planOf(steps, arcs, "TB");
  const shrunk = (plan: Plan) => Math.min(1, room.width / Math.max(1, plan.width), room.height / Math.max(1, plan.height));
  if (shrunk(down) === 1) return down;
  const across = planOf(steps, arcs, "LR");
  return shrunk(across) > shrunk(down) ? across : down;
}

/** A forward arc begins and ends in the middle of a side; a back arc keeps its own corners. */
function straightened(points: Point[], from: PlacedStep | undefined, to: PlacedStep | undefined, direction: Direction): Point[] {
  if (!from || !to || points.length < 2) return points;
  const goesOn = direction === "TB" ? from.y + from.height <= to.y : from.x + from.width <= to.x;
  if (!goesOn) return points;
  const [begin, end] =
    direction === "TB"
      ? [{ x: from.x + from.width / 2, y: from.y + from.height }, { x: to.x + to.width / 2, y: to.y }]
      : [{ x: from.x + from.width, y: from.y + from.height / 2 }, { x: to.x, y: to.y + to.height / 2 }];
  // Leaves and arrives at right angles to the side.
  const out = direction === "TB" ? { x: begin.x, y: begin.y + 14 } : { x: begin.x + 14, y: begin.y };
  const into = direction === "TB" ? { x: end.x, y: end.y - 18 } : { x: end.x - 18, y: end.y };
  return [begin, out, ...points.slice(1, -1), into, end];
}

/** A condition without the signs around it. */
function condition(when: string | null): string | null {
  if (when === null) return null;
  const text = when.replace(/^\s*\{\{\s*|\s*\}\}\s*$/g, "").replace(/\s+/g, " ");
  return text.length > LABEL_MOST ? `${text.slice(0, LABEL_MOST - 1)}…` : text;
}

/** A line through points, its corners rounded by curves from middle to middle. */
export function lineThrough(points: Point[]): string {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (!first || !last) return "";
  const curves = rest.slice(0, -1).map((point, place) => {
    const next = rest[place + 1] ?? last;
    return `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  });
  return `M${first.x} ${first.y} ${curves.join(" ")} L${last.x} ${last.y}`;
}

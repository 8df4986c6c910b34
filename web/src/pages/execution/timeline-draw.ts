// Paints a timeline: only what is in view, so that ten thousand bars cost as much as ten.

import { firstAfter, type Bar, type Lanes } from "../../model/lanes";
import { duration, roundly } from "../../ui/time";

/** Room for the names of steps at the left, and for the times above. */
export const LABELS = 140;
export const AXIS = 26;

/** How high a lane is: the more there are, the lower. */
export function laneHeight(lanes: number): number {
  if (lanes > 400) return 6;
  if (lanes > 120) return 10;
  return lanes > 40 ? 14 : 22;
}

/** What is to be painted. */
export interface Scene {
  lanes: Lanes;
  size: { width: number; height: number };
  /** How far it is scrolled down. */
  top: number;
  /** The first time that is shown, and how much of it. */
  from: number;
  span: number;
  /** How far bars reach that are not over. */
  until: number;
  chosen: string | null;
  colour(name: string): string;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { size } = scene;
  context.clearRect(0, 0, size.width, size.height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  grounds(context, scene);
  bars(context, scene);
  labels(context, scene);
  axis(context, scene);
}

const xOf = ({ size, from, span }: Scene, time: number): number => LABELS + ((time - from) / span) * Math.max(1, size.width - LABELS);

/** Every second step stands on another ground, and thin lines lead down from the times. */
function grounds(context: CanvasRenderingContext2D, scene: Scene): void {
  const { lanes, size, top, colour } = scene;
  const lane = laneHeight(lanes.byLane.length);
  lanes.groups.forEach((group, place) => {
    if (place % 2 === 1) return;
    context.fillStyle = colour("ground");
    context.fillRect(0, AXIS + group.lane * lane - top, size.width, group.lanes * lane);
  });
  context.fillStyle = colour("sunken");
  for (const time of ticks(scene)) context.fillRect(Math.round(xOf(scene, time)), AXIS, 1, size.height);
}

function bars(context: CanvasRenderingContext2D, scene: Scene): void {
  const { lanes, size, top, from, span } = scene;
  const lane = laneHeight(lanes.byLane.length);
  const first = Math.max(0, Math.floor((top - AXIS) / lane));
  const last = Math.min(lanes.byLane.length, Math.ceil((top + size.height) / lane));
  for (let place = first; place < last; place += 1) {
    const row = lanes.byLane[place] ?? [];
    let drawnTo = -1;
    for (let at = firstAfter(row, from); at < row.length; at += 1) {
      const bar = row[at];
      if (!bar || bar.from > from + span) break;
      const left = Math.max(LABELS, xOf(scene, bar.from));
      const right = Math.max(left + 2, Math.min(size.width, xOf(scene, bar.to ?? scene.until)));
      // Bars that share a pixel are one to the eye.
      if (right <= drawnTo && bar.state !== "failed") continue;
      drawnTo = right;
      one(context, scene, bar, { left, right, y: AXIS + place * lane - top, lane });
    }
  }
}

interface Place {
  left: number;
  right: number;
  y: number;
  lane: number;
}

function one(context: CanvasRenderingContext2D, scene: Scene, bar: Bar, { left, right, y, lane }: Place): void {
  const { colour } = scene;
  const gap = lane > 10 ? 3 : 1;
  const taken = bar.taken === null ? right : Math.min(right, Math.max(left, xOf(scene, bar.taken)));
  if (lane > 8 && taken > left + 0.5) {
    // A thin line shows the time before a worker claimed the command.
    context.fillStyle = colour("faint");
    context.fillRect(left, y + lane / 2 - 1, taken - left, 2);
  }
  const begin = lane > 8 ? taken : left;
  const width = bar.taken === null && lane > 8 ? 0 : Math.max(2, right - begin);
  if (width > 0) {
    context.fillStyle = colour(bar.state === "pending" ? "faint" : bar.state);
    // Corners of a narrow bar are invisible, and there may be thousands of bars.
    if (width < 6) context.fillRect(begin, y + gap, width, lane - 2 * gap);
    else {
      context.beginPath();
      context.roundRect(begin, y + gap, width, lane - 2 * gap, 3);
      context.fill();
    }
    if (width > 20 && lane > 18) said(context, scene, bar, begin, width, y + lane / 2);
  }
  if (bar.command.id === scene.chosen) {
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    context.beginPath();
    context.roundRect(left, y + gap, Math.max(width, right - left), lane - 2 * gap, 3);
    context.stroke();
  }
}

/** What fits into a bar: which piece it is, and how long it took. */
function said(context: CanvasRenderingContext2D, scene: Scene, bar: Bar, begin: number, width: number, middle: number): void {
  const { command } = bar;
  const long = duration((bar.to ?? scene.until) - (bar.taken ?? bar.from));
  const which = command.item !== null ? `#${command.item} ` : command.attempt > 1 ? `try ${command.attempt} ` : "";
  const text = [`${which}${long}`, long, which.trim()].find((one) => one !== "" && context.measureText(one).width + 10 <= width);
  if (text === undefined) return;
  context.fillStyle = scene.colour("surface");
  context.fillText(text, begin + 5, middle + 0.5);
}

function labels(context: CanvasRenderingContext2D, { lanes, size, top, colour }: Scene): void {
  const lane = laneHeight(lanes.byLane.length);
  lanes.groups.forEach((group, place) => {
    const y = AXIS + group.lane * lane - top;
    const height = group.lanes * lane;
    if (y + height < AXIS || y > size.height) return;
    context.fillStyle = colour(place % 2 === 0 ? "ground" : "surface");
    context.fillRect(0, y, LABELS - 2, height);
    // The name of a step with many lanes stays where it can be seen.
    const middle = Math.max(AXIS + 10, Math.min(y + Math.min(height, 22) / 2, size.height - 10));
    context.fillStyle = colour("ink");
    context.fillText(cut(context, group.step, LABELS - (group.lanes > 1 ? 48 : 16)), 8, middle);
    if (group.lanes > 1) {
      context.fillStyle = colour("faint");
      context.textAlign = "right";
      context.fillText(`×${group.lanes}`, LABELS - 8, middle);
      context.textAlign = "left";
    }
  });
}

function axis(context: CanvasRenderingContext2D, scene: Scene): void {
  const { lanes, size, colour } = scene;
  context.fillStyle = colour("surface");
  context.fillRect(0, 0, size.width, AXIS);
  context.fillStyle = colour("line");
  context.fillRect(0, AXIS - 1, size.width, 1);
  context.fillStyle = colour("faint");
  for (const time of ticks(scene)) {
    const at = Math.round(xOf(scene, time));
    const text = roundly(time - lanes.from);
    context.fillRect(at, AXIS - 5, 1, 5);
    const width = context.measureText(text).width;
    if (at + 4 + width <= size.width) context.fillText(text, at + 4, AXIS / 2);
  }
}

/** Round times, far enough from each other to be read. */
function ticks({ lanes, size, from, span }: Scene): number[] {
  const room = Math.max(1, Math.floor((size.width - LABELS) / 90));
  const step = stepOf(span / room);
  const found: number[] = [];
  for (let time = lanes.from + Math.ceil((from - lanes.from) / step) * step; time <= from + span; time += step) found.push(time);
  return found;
}

const MINUTE = 60_000;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, ...[1, 2, 5, 10, 15, 30, 60, 120, 360, 720].map((many) => many * MINUTE)];

/** The first round length of time that is not shorter. */
export function stepOf(least: number): number {
  const day = 1440 * MINUTE;
  return STEPS.find((step) => step >= least) ?? Math.max(1, Math.ceil(least / day)) * day;
}

function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let length = Math.min(text.length, 40);
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}

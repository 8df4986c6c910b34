// An execution as its log tells it. Events are taken once, in their order; what they say is kept with
// the place at which it began to hold, so that any moment can be asked for without reading again.

import { field, isObject, text, type Json } from "../api/json";
import type { EventView } from "../api/types";

/** How a command or a step stands. */
export type State = "pending" | "running" | "waiting" | "completed" | "failed" | "cancelled";

/** Something that began to hold at a place of the log. */
export interface Change {
  seq: number;
  at: number;
  state: State;
}

/** One piece of work that was handed out: a step, one attempt at it, or one item of its loop. */
export interface Command {
  id: string;
  step: string;
  visit: number;
  attempt: number;
  /** The item of a loop; nothing outside one. */
  item: number | null;
  tool: string;
  changes: Change[];
  worker: string | null;
  /** The execution it waits for. */
  child: string | null;
  /** What a person answers it with, while it waits for one. */
  token: string | null;
  error: string | null;
  /** Places of the events that hold its input, what it came to, and how it failed. */
  issuedSeq: number;
  doneSeq: number | null;
  failedSeq: number | null;
}

/** One time that a step was gone through. */
export interface Visit {
  step: string;
  number: number;
  enterSeq: number;
  enterAt: number;
  exitSeq: number | null;
  exitAt: number | null;
  exitState: State | null;
  taken: string[];
  notTaken: string[];
  error: string | null;
}

export interface Loop {
  step: string;
  visit: number;
  seq: number;
  size: number | null;
  doneSeq: number | null;
}

/** A value of the context, from a place of the log on. */
export interface Assignment {
  seq: number;
  key: string;
  value: Json;
  step: string;
}

export class Story {
  readonly events: EventView[] = [];
  readonly commands: Command[] = [];
  readonly visits: Visit[] = [];
  readonly loops: Loop[] = [];
  readonly assignments: Assignment[] = [];
  readonly forkedFrom: { execution: string; seq: string | undefined } | null = null;
  /** How it ended, and where the log says so. */
  end: { seq: number; at: number; state: State; error: string | null } | null = null;
  /** When the first event was decided. */
  startAt = 0;
  #commands = new Map<string, Command>();
  #visits = new Map<string, Visit>();
  #loops = new Map<string, Loop>();

  /** The place of the last event that was taken. */
  get last(): number {
    return this.events[this.events.length - 1]?.seq ?? 0;
  }

  /** Takes the next events. What was taken already is passed over, so a repeat changes nothing. */
  take(events: readonly EventView[]): void {
    for (const event of events) {
      if (event.seq <= this.last) continue;
      this.events.push(event);
      this.#apply(event);
    }
  }

  /** The command of an event, if it is about one. */
  command(id: string): Command | undefined {
    return this.#commands.get(id);
  }

  #apply(event: EventView): void {
    const { seq } = event;
    const at = Date.parse(event.timestamp);
    const step = event.node_name ?? "";
    switch (event.event_type) {
      case "playbook_started": {
        this.startAt = at;
        const from = field(event.meta, "forked_from");
        const execution = text(field(from, "execution_id") ?? field(from, "execution"));
        if (execution !== undefined) {
          (this as { forkedFrom: Story["forkedFrom"] }).forkedFrom = { execution, seq: text(field(from, "seq")) };
        }
        break;
      }
      case "step.enter": {
        const number = count(field(event.meta, "generation")) ?? 1;
        const visit: Visit = {
          step, number, enterSeq: seq, enterAt: at, exitSeq: null, exitAt: null, exitState: null, taken: [], notTaken: [], error: null,
        };
        this.#visits.set(`${step} ${number}`, visit);
        this.visits.push(visit);
        break;
      }
      case "step.exit": {
        const said = field(event.result, "context");
        const visit = this.#visits.get(`${step} ${count(field(said, "generation")) ?? 1}`);
        if (!visit) break;
        visit.exitSeq = seq;
        visit.exitAt = at;
        visit.exitState = stateOf(event.status);
        visit.taken = steps(field(said, "next", "taken"));
        visit.notTaken = steps(field(said, "next", "not_taken"));
        visit.error = event.error ?? null;
        break;
      }
      case "loop.started": {
        const id = text(field(event.meta, "loop_id")) ?? step;
        const visit = count(id.split(":").at(-1)) ?? 1;
        const loop: Loop = { step, visit, seq, size: count(field(event.meta, "collection_size")), doneSeq: null };
        this.#loops.set(id, loop);
        this.loops.push(loop);
        break;
      }
      case "loop.done": {
        const loop = this.#loops.get(text(field(event.meta, "loop_id")) ?? step);
        if (loop) {
          loop.doneSeq = seq;
          loop.size = count(field(event.meta, "total")) ?? loop.size;
        }
        break;
      }
      case "command.issued":
        this.#issued(event, step, at);
        break;
      case "command.claimed":
      case "command.started": {
        const command = this.#about(event);
        if (!command) break;
        command.worker = event.worker_id ?? command.worker;
        if (this.stateOf(command) === "pending") change(command, seq, at, "running");
        break;
      }
      case "command.parked": {
        const command = this.#about(event);
        if (!command) break;
        command.child = text(field(event.context, "child", "execution")) ?? null;
        command.token = text(field(event.context, "callback", "token")) ?? null;
        change(command, seq, at, "waiting");
        break;
      }
      case "call.done": {
        const command = this.#about(event);
        if (command) command.doneSeq = seq;
        break;
      }
      case "call.error": {
        const command = this.#about(event);
        if (command) command.failedSeq = seq;
        break;
      }
      case "command.completed":
        change(this.#about(event), seq, at, "completed");
        break;
      case "command.failed": {
        const command = this.#about(event);
        if (!command) break;
        command.failedSeq = seq;
        command.error = event.error ?? null;
        change(command, seq, at, "failed");
        break;
      }
      case "command.expired":
        // Its worker was lost: it waits for another.
        change(this.#about(event), seq, at, "pending");
        break;
      case "command.cancelled":
        change(this.#about(event), seq, at, "cancelled");
        break;
      case "ctx.updated": {
        const values = field(event.result, "context", "values");
        if (isObject(values)) {
          for (const [key, value] of Object.entries(values)) this.assignments.push({ seq, key, value, step });
        }
        break;
      }
      case "playbook.completed":
        this.end = { seq, at, state: "completed", error: null };
        break;
      case "playbook.failed":
        this.end = { seq, at, state: "failed", error: event.error ?? null };
        break;
      case "playbook_cancelled":
      case "playbook.cancelled":
        this.end = { seq, at, state: "cancelled", error: event.error ?? null };
        break;
    }
  }

  #issued(event: EventView, step: string, at: number): void {
    const command: Command = {
      id: event.event_id,
      step,
      visit: count(field(event.meta, "generation")) ?? 1,
      attempt: count(field(event.meta, "attempt")) ?? 1,
      item: count(field(event.meta, "iteration_index")),
      tool: text(field(event.meta, "tool_kind")) ?? event.node_type ?? "",
      changes: [{ seq: event.seq, at, state: "pending" }],
      worker: null,
      child: null,
      token: null,
      error: null,
      issuedSeq: event.seq,
      doneSeq: null,
      failedSeq: null,
    };
    this.#commands.set(command.id, command);
    this.commands.push(command);
  }

  #about(event: EventView): Command | undefined {
    const name = text(field(event.meta, "command_id")) ?? text(field(event.result, "context", "command_id"));
    return name === undefined ? undefined : this.#commands.get(name.slice(name.lastIndexOf(":") + 1));
  }

  /** How a command stands, at a place of the log or at its end. */
  stateOf(command: Command, seq = Infinity): State | null {
    return changeAt(command, seq)?.state ?? null;
  }
}

/** What held of a command at a place of the log; nothing before it was issued. */
export function changeAt(command: Command, seq: number): Change | null {
  const { changes } = command;
  for (let place = changes.length - 1; place >= 0; place -= 1) {
    const found = changes[place];
    if (found && found.seq <= seq) return found;
  }
  return null;
}

/** Whether nothing follows on it. */
export function isOver(state: State): boolean {
  return state === "completed" || state === "failed" || state === "cancelled";
}

function change(command: Command | undefined, seq: number, at: number, state: State): void {
  command?.changes.push({ seq, at, state });
}

function stateOf(status: string | null): State {
  switch (status) {
    case "FAILED":
      return "failed";
    case "CANCELLED":
      return "cancelled";
    default:
      return "completed";
  }
}

function steps(value: Json | undefined): string[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((one) => text(isObject(one) ? one["step"] : one) ?? []);
}

function count(value: Json | undefined): number | null {
  const number = typeof value === "number" ? value : typeof value === "string" && value !== "" ? Number(value) : NaN;
  return Number.isInteger(number) ? number : null;
}

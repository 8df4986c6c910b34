import { describe, expect, it } from "vitest";

import type { EventView } from "../api/types";
import { stepsOf } from "./graph";
import { atOnce, lanesOf } from "./lanes";
import { planFor, planOf } from "./layout";
import { arcKey, differences, indexOf, momentAt } from "./moment";
import { Story } from "./story";

const START = Date.parse("2026-01-01T00:00:00Z");

/** A log from short descriptions; one event every 100 ms. */
function log(...said: Partial<EventView>[]): EventView[] {
  return said.map((one, place) => ({
    seq: place + 1, event_id: String(100 + place), event_type: null, node_name: null, node_type: null, status: null,
    created_at: new Date(START + place * 100).toISOString(),
    timestamp: new Date(START + place * 100).toISOString(), worker_id: null, ...one,
  }));
}

const command = (id: string) => ({ meta: { command_id: `7:start:${id}` } });

const LOG = log(
  { event_type: "playbook_started" },
  { event_type: "step.enter", node_name: "start", meta: { generation: 1 } },
  { event_type: "loop.started", node_name: "start", meta: { loop_id: "start:1", collection_size: 2 } },
  { event_type: "command.issued", node_name: "start", event_id: "1", meta: { generation: 1, attempt: 1, iteration_index: 0, tool_kind: "python" } },
  { event_type: "command.issued", node_name: "start", event_id: "2", meta: { generation: 1, attempt: 1, iteration_index: 1, tool_kind: "python" } },
  { event_type: "command.claimed", node_name: "start", worker_id: "local", ...command("1") },
  { event_type: "command.claimed", node_name: "start", worker_id: "local", ...command("2") },
  { event_type: "call.done", node_name: "start", ...command("1") },
  { event_type: "command.completed", node_name: "start", ...command("1") },
  { event_type: "command.failed", node_name: "start", error: "schema: 5 is odd", ...command("2") },
  { event_type: "loop.done", node_name: "start", meta: { loop_id: "start:1", total: 2 } },
  { event_type: "ctx.updated", node_name: "start", result: { context: { values: { label: "mild" } } } },
  { event_type: "step.exit", node_name: "start", status: "COMPLETED", result: { context: { generation: 1, next: { taken: [{ step: "end" }], not_taken: ["hot"] } } } },
  { event_type: "step.enter", node_name: "end", meta: { generation: 1 } },
  { event_type: "command.issued", node_name: "end", event_id: "3", meta: { generation: 1, attempt: 1, tool_kind: "wait" } },
  { event_type: "command.parked", node_name: "end", meta: { command_id: "7:end:3" }, context: { child: { execution: "9223372036854775807" } } },
  { event_type: "playbook_cancelled", node_name: "playbook", status: "CANCELLED" },
);

function told(events = LOG): Story {
  const story = new Story();
  story.take(events);
  return story;
}

describe("a moment", () => {
  it("shows what held there and nothing that came later", () => {
    const story = told();
    const states = (seq: number) => [...momentAt(story, seq).steps].map(([name, step]) => `${name} ${step.state}`);
    expect(states(0)).toEqual([]);
    expect(states(2)).toEqual(["start pending"]);
    expect(states(6)).toEqual(["start running"]);
    expect(states(13)).toEqual(["start completed"]);
    expect(states(16)).toEqual(["start completed", "end waiting"]);
    expect(states(17)).toEqual(["start completed", "end cancelled"]);
    expect(momentAt(story, 9).steps.get("start")?.loop).toEqual({ total: 2, done: 1, failed: 0, running: 1 });
    expect(momentAt(story, 12).context.get("label")?.value).toBe("mild");
    expect(momentAt(story, 11).context.size).toBe(0);
    expect(momentAt(story, 12).arcs.size).toBe(0);
    expect(momentAt(story, 13).arcs.get(arcKey("start", "end"))).toEqual({ taken: 1, notTaken: 0 });
    expect(momentAt(story, 13).arcs.get(arcKey("start", "hot"))).toEqual({ taken: 0, notTaken: 1 });
    expect([momentAt(story, 16).state, momentAt(story, 17).state]).toEqual(["running", "cancelled"]);
    expect(momentAt(story, 999).seq).toBe(17);
  });

  it("counts every piece of work once", () => {
    const { counts } = momentAt(told(), 16);
    expect(counts).toEqual({ pending: 0, running: 0, waiting: 1, completed: 1, failed: 1, cancelled: 0, events: 16, steps: 2 });
  });

  it("is the same however the log came: whole, in parts, twice", () => {
    const story = new Story();
    for (const event of LOG) {
      story.take([event]);
      story.take(LOG.slice(0, event.seq));
    }
    for (const seq of [3, 9, 17]) expect(momentAt(story, seq)).toEqual(momentAt(told(), seq));
  });

  it("is found where a log has gaps", () => {
    const story = told(LOG.filter((event) => event.seq % 3 !== 0));
    expect([indexOf(story, 0), indexOf(story, 4), indexOf(story, 6), indexOf(story, 99)]).toEqual([-1, 2, 3, 11]);
  });

  it("differs from another by what changed between them", () => {
    const story = told();
    const found = differences(momentAt(story, 9), momentAt(story, 13));
    expect(found.filter((one) => one.what !== "count")).toEqual([
      { what: "step", name: "start", before: "running, 1 of 2 items", after: "completed, 2 of 2 items" },
      { what: "context", name: "label", before: undefined, after: "mild" },
    ]);
    expect(differences(momentAt(story, 9), momentAt(story, 9))).toEqual([]);
  });
});

it("a command that lost its worker waits for another and then completes", () => {
  const story = told(
    log(
      { event_type: "command.issued", node_name: "start", event_id: "1" },
      { event_type: "command.claimed", ...command("1") },
      { event_type: "command.expired", ...command("1") },
      { event_type: "command.claimed", ...command("1") },
    ),
  );
  const only = story.commands[0];
  expect(only && [1, 2, 3, 4].map((seq) => story.stateOf(only, seq))).toEqual(["pending", "running", "pending", "running"]);
});

describe("lanes", () => {
  it("put what ran at the same time below each other", () => {
    const { groups, bars } = lanesOf(told(), 17, 0);
    expect(atOnce(bars, 0)).toBe(2);
    expect(groups).toEqual([{ step: "start", lane: 0, lanes: 2 }, { step: "end", lane: 2, lanes: 1 }]);
    expect(bars.map((bar) => [bar.step, bar.state, bar.lane])).toEqual([
      ["start", "completed", 0], ["start", "failed", 1], ["end", "cancelled", 2],
    ]);
  });

  it("use a lane again when it is free", () => {
    const events: EventView[] = [];
    for (let item = 0; item < 10_000; item += 1) {
      events.push(
        ...log(
          { event_type: "command.issued", node_name: "start", event_id: String(item), meta: { iteration_index: item } },
          { event_type: "command.completed", ...command(String(item)) },
        ),
      );
    }
    const spread = events.map((event, place) => ({ ...event, seq: place + 1, timestamp: new Date(START + place * 10).toISOString() }));
    const lanes = lanesOf(told(spread), Infinity, 0);
    expect([lanes.bars.length, lanes.byLane.length]).toEqual([10_000, 1]);
    expect(atOnce(lanes.bars, 0)).toBe(1);
  });
});

describe("a graph", () => {
  it("has a node for each step and an arc for each way on", () => {
    const { steps, arcs } = stepsOf([
      { step: "start", tool: { kind: "noop" }, next: { arcs: [{ step: "hot", when: "{{ x }}" }, { step: "end" }] } },
      { step: "hot", tool: [{ kind: "a" }, { kind: "b" }], loop: {}, next: ["end", "start"] },
      { step: "end", tool: { python: {} } },
    ]);
    expect(steps.map((step) => [step.name, step.tool, step.loops])).toEqual([
      ["start", "noop", false], ["hot", "pipeline of 2", true], ["end", "python", false],
    ]);
    expect(arcs.map((arc) => `${arc.from}>${arc.to}`)).toEqual(["start>hot", "start>end", "hot>end", "hot>start"]);
    const places = planOf(steps, [...arcs, { from: "end", to: "gone", when: null }]);
    expect(places.arcs.length).toBe(4);
    expect(new Set(places.steps.map((step) => `${step.x} ${step.y}`)).size).toBe(3);
    expect(places.arcs.map((arc) => arc.label?.text ?? null)).toEqual(["x", null, null, null]);
  });

  it("runs in the direction in which more of it can be seen", () => {
    const names = ["a", "b", "c", "d", "e", "f"];
    const steps = names.map((name) => ({ name, tool: "noop", loops: false }));
    const arcs = names.slice(1).map((to, place) => ({ from: names[place] ?? "", to, when: null }));
    const direction = (width: number, height: number) => planFor(steps, arcs, { width, height }).direction;
    expect(direction(1200, 300)).toBe("LR");
    expect(direction(400, 900)).toBe("TB");
    expect(direction(5000, 5000)).toBe("TB");
    expect(direction(0, 0)).toBe("TB");
  });

  it("is empty for a document without steps", () => {
    for (const workflow of [undefined, null, "text", {}, [1, {}, null]]) expect(stepsOf(workflow).steps).toEqual([]);
  });
});

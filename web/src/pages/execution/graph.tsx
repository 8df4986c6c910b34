// The playbook as a graph, coloured by how each step stands at the shown moment.

import {
  Background,
  BaseEdge,
  Controls,
  Handle,
  MarkerType,
  Position,
  ReactFlow,
  type Edge,
  type EdgeProps,
  type HandleType,
  type Node,
  type NodeHandle,
  type NodeProps,
  type ReactFlowInstance,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { memo, useEffect, useMemo, useRef, useState } from "react";

import type { Json } from "../../api/json";
import { stepsOf, type Step } from "../../model/graph";
import { lineThrough, planFor, type Direction, type PlacedArc } from "../../model/layout";
import { arcKey, type Moment, type StepState } from "../../model/moment";
import type { Story } from "../../model/story";
import { useTheme } from "../../shell/theme";

type StepNode = Node<{ step: Step; state: StepState | null; chosen: boolean; direction: Direction }, "step">;
type Way = Edge<{ arc: PlacedArc; taken: number }, "way">;

interface Props {
  workflow: Json | undefined;
  story: Story;
  version: number;
  moment: Moment;
  chosen: string | null;
  choose(step: string): void;
}

/** Drawn again only when what it shows changes: the slider moves often. */
export const Graph = memo(function Graph({ workflow, story, version, moment, chosen, choose }: Props) {
  const [theme] = useTheme();
  const known = story.visits.length;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const plan = useMemo(() => {
    const { steps, arcs } = stepsOf(workflow);
    // A log may have steps that the document lacks, if it was imported or forked.
    for (const visit of story.visits) {
      if (!steps.some((step) => step.name === visit.step)) steps.push({ name: visit.step, tool: "", loops: false });
      for (const to of visit.taken) {
        if (!arcs.some((arc) => arc.from === visit.step && arc.to === to)) arcs.push({ from: visit.step, to, when: null });
      }
    }
    return planFor(steps, arcs, { width, height: HIGHEST });
  }, [workflow, known, width]);

  const nodes = useMemo<StepNode[]>(
    () =>
      plan.steps.map((step) => ({
        id: step.name,
        type: "step",
        position: { x: step.x, y: step.y },
        data: { step, state: moment.steps.get(step.name) ?? null, chosen: chosen === step.name, direction: plan.direction },
        width: step.width,
        height: step.height,
        measured: { width: step.width, height: step.height },
        handles: handlesOf(step, plan.direction),
        draggable: false,
        connectable: false,
        ariaLabel: said(step, moment.steps.get(step.name)),
      })),
    [plan, moment, chosen, version],
  );
  const edges = useMemo<Way[]>(
    () =>
      plan.arcs.map((arc) => {
        const state = moment.arcs.get(arcKey(arc.from, arc.to));
        const kind = state?.taken ? "taken" : state?.notTaken ? "not-taken" : "open";
        return {
          id: arcKey(arc.from, arc.to),
          type: "way",
          data: { arc, taken: state?.taken ?? 0 },
          source: arc.from,
          target: arc.to,
          className: `arc ${kind}`,
          focusable: false,
          markerEnd: { type: MarkerType.ArrowClosed, color: ARROWS[kind] },
        };
      }),
    [plan, moment],
  );
  const flow = useRef<ReactFlowInstance<StepNode, Way> | null>(null);
  // A graph that the user moved stays; until then it fills the available space.
  const moved = useRef(false);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      setWidth(element.clientWidth);
      if (!moved.current) void flow.current?.fitView(FIT);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (!moved.current) requestAnimationFrame(() => void flow.current?.fitView(FIT));
  }, [plan]);

  return (
    <div className="graph" ref={box} data-steps={plan.steps.length} style={{ height: Math.min(HIGHEST, Math.max(LOWEST, plan.height + 72)) }}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodeClick={(_event, node) => choose(node.id)}
        onNodesChange={(changes) => {
          for (const one of changes) if (one.type === "select" && one.selected) choose(one.id);
        }}
        colorMode={theme}
        fitView
        fitViewOptions={FIT}
        onInit={(instance) => {
          flow.current = instance;
        }}
        onMoveStart={(event) => {
          if (event) moved.current = true;
        }}
        minZoom={0.1}
        maxZoom={2}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        deleteKeyCode={null}
        preventScrolling={false}
        zoomOnScroll={false}
        panOnScroll={false}
        proOptions={{ hideAttribution: true }}
        aria-label="The steps of the playbook and the ways between them"
      >
        <Background />
        <Controls showInteractive={false} orientation="horizontal" />
      </ReactFlow>
    </div>
  );
});

/**
 * Where arcs begin and end. All is known from the plan: an arc between steps that have yet to be measured is not
 * drawn, and steps that change while they are measured would never be.
 */
function handlesOf({ width, height }: { width: number; height: number }, direction: Direction): NodeHandle[] {
  const ends: [type: HandleType, down: Position, right: Position, far: number][] = [
    ["target", Position.Top, Position.Left, 0],
    ["source", Position.Bottom, Position.Right, 1],
  ];
  return ends.map(([type, down, right, far]) =>
    direction === "TB" ? { type, position: down, x: width / 2, y: far * height } : { type, position: right, x: far * width, y: height / 2 },
  );
}

/** How high its room may be, in pixels: as high as it needs, within these. */
const HIGHEST = 380;
const LOWEST = 150;
const FIT = { maxZoom: 1, padding: 0.08 };

const NODE_TYPES = { step: StepBox };
const EDGE_TYPES = { way: WayLine };
/** The tips of arcs, in the colours of their lines. */
const ARROWS = { taken: "var(--completed)", "not-taken": "var(--faint)", open: "var(--faint)" };

/** An arc, along the way that was laid for it. */
function WayLine({ id, data, markerEnd }: EdgeProps<Way>) {
  if (!data) return null;
  const { arc, taken } = data;
  const middle = arc.label ?? arc.points[Math.floor(arc.points.length / 2)] ?? { x: 0, y: 0 };
  const text = [arc.label?.text, taken > 1 ? `×${taken}` : null].filter(Boolean).join(" ");
  return (
    <>
      <BaseEdge id={id} path={lineThrough(arc.points)} {...(markerEnd ? { markerEnd } : {})} />
      {text !== "" && (
        <g className="way-label" transform={`translate(${middle.x} ${middle.y})`}>
          <title>{arc.when ?? text}</title>
          <rect x={-text.length * 3.1 - 5} y={-9} width={text.length * 6.2 + 10} height={18} rx={5} />
          <text textAnchor="middle" dominantBaseline="central">
            {text}
          </text>
        </g>
      )}
    </>
  );
}

function StepBox({ data }: NodeProps<StepNode>) {
  const { step, state, chosen, direction } = data;
  const down = direction === "TB";
  const loop = state?.loop;
  const over = loop ? loop.done + loop.failed : 0;
  return (
    <div className={`step is-${state?.state ?? "none"}${chosen ? " chosen" : ""}`}>
      <Handle type="target" position={down ? Position.Top : Position.Left} isConnectable={false} />
      <div className="step-name" title={step.name}>
        {step.name}
      </div>
      <div className="step-about">
        <span>{step.tool}</span>
        {state && <span className="step-state">{state.state}</span>}
        {state && state.visits > 1 && <span title="visits">×{state.visits}</span>}
        {state && state.attempts > 1 && <span title="attempts">try {state.attempts}</span>}
      </div>
      {loop && (
        <div className="step-loop" title={`${loop.done} done, ${loop.failed} failed, ${loop.running} running`}>
          <progress max={loop.total ?? Math.max(over + loop.running, 1)} value={over} aria-label={`Items of ${step.name}`} />
          <span>
            {over}/{loop.total ?? "?"}
            {loop.failed > 0 && <b> {loop.failed} failed</b>}
          </span>
        </div>
      )}
      <Handle type="source" position={down ? Position.Bottom : Position.Right} isConnectable={false} />
    </div>
  );
}

function said(step: Step, state: StepState | undefined): string {
  const parts = [`Step ${step.name}`, state?.state ?? "not reached"];
  if (state?.loop) parts.push(`${state.loop.done + state.loop.failed} of ${state.loop.total ?? "unknown"} items`);
  return parts.join(", ");
}

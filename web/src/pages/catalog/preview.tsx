// A playbook as a picture: its steps and the ways between them. Nothing runs here; the page of an
// execution has the graph that lives.

import { useMemo } from "react";

import type { Json } from "../../api/json";
import { stepsOf, type Arc } from "../../model/graph";
import { lineThrough, planOf } from "../../model/layout";
import { Empty } from "../../ui/empty";

/** Characters of a name that fit into a box; the whole name is its title. */
const FITTING = 22;

export default function Preview({ workflow }: { workflow: Json }) {
  const { steps, arcs, plan } = useMemo(() => {
    const found = stepsOf(workflow);
    return { ...found, plan: planOf(found.steps, found.arcs) };
  }, [workflow]);
  if (steps.length === 0) {
    return (
      <Empty title="There are no steps to draw">
        <p>
          Steps stand in the document under <code>workflow</code>.
        </p>
      </Empty>
    );
  }
  return (
    <div className="preview" tabIndex={0} role="region" aria-label="The graph of the playbook">
      <svg width={plan.width} height={plan.height} viewBox={`0 0 ${plan.width} ${plan.height}`} role="img" aria-label={`${steps.length} steps`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
            <path d="M0 0 8 4 0 8Z" />
          </marker>
        </defs>
        {plan.arcs.map((arc) => (
          <path key={`${arc.from}\n${arc.to}`} className={arc.when === null ? "way" : "way asked"} d={lineThrough(arc.points)} markerEnd="url(#arrow)">
            <title>{`${arc.from} to ${arc.to}${arc.when === null ? "" : `, when ${arc.when}`}`}</title>
          </path>
        ))}
        {plan.arcs.map(
          ({ from, to, label }) =>
            label && (
              <text key={`${from}\n${to}`} className="when" x={label.x} y={label.y + 4} textAnchor="middle">
                {label.text}
              </text>
            ),
        )}
        {plan.steps.map((step) => (
          <g key={step.name} transform={`translate(${step.x} ${step.y})`}>
            <title>{step.name}</title>
            <rect width={step.width} height={step.height} rx="8" />
            <text x="12" y="24" className="name">
              {step.name.length > FITTING ? `${step.name.slice(0, FITTING - 1)}…` : step.name}
            </text>
            <text x="12" y="43">{step.tool}</text>
            {step.loops && (
              <text x="12" y="62">
                ↻ for each item
              </text>
            )}
          </g>
        ))}
      </svg>
      <ul className="visually-hidden">
        {steps.map((step) => (
          <li key={step.name}>
            {step.name} ({step.tool}){after(step.name, arcs)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function after(step: string, arcs: Arc[]): string {
  const ways = arcs.filter((arc) => arc.from === step).map((arc) => (arc.when === null ? arc.to : `${arc.to} when ${arc.when}`));
  return ways.length === 0 ? ", the end" : `, then ${ways.join(" or ")}`;
}

// The steps of a playbook and the arcs between them.

import { field, isObject, text, type Json } from "../api/json";

export interface Step {
  name: string;
  tool: string;
  loops: boolean;
}

export interface Arc {
  from: string;
  to: string;
  when: string | null;
}

/** The steps and arcs that a playbook's `workflow` block tells of. */
export function stepsOf(workflow: Json | undefined): { steps: Step[]; arcs: Arc[] } {
  const steps: Step[] = [];
  const arcs: Arc[] = [];
  for (const one of Array.isArray(workflow) ? workflow : []) {
    const name = text(field(one, "step"));
    if (name === undefined || steps.some((known) => known.name === name)) continue;
    steps.push({ name, tool: toolOf(field(one, "tool")), loops: isObject(field(one, "loop")) });
    arcs.push(...arcsOf(name, field(one, "next")));
  }
  return { steps, arcs };
}

function toolOf(tool: Json | undefined): string {
  if (typeof tool === "string") return tool;
  if (Array.isArray(tool)) return tool.length === 1 ? toolOf(tool[0]) : `pipeline of ${tool.length}`;
  const kind = text(field(tool, "kind"));
  if (kind !== undefined) return kind;
  // The older form names its kind by the key.
  return isObject(tool) ? (Object.keys(tool)[0] ?? "") : "";
}

function arcsOf(from: string, next: Json | undefined): Arc[] {
  const listed = isObject(next) && next["arcs"] !== undefined ? next["arcs"] : next;
  const list = Array.isArray(listed) ? listed : listed === undefined || listed === null ? [] : [listed];
  return list.flatMap((one) => {
    const to = typeof one === "string" ? one : text(field(one, "step"));
    const when = field(one, "when");
    return to === undefined ? [] : [{ from, to, when: when === undefined || when === null ? null : typeof when === "string" ? when : JSON.stringify(when) }];
  });
}

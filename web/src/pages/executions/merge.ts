// A list of executions with what a stream says about it.

import type { Execution, ListChange } from "../../api/types";

/** The list after a change, newest start first, of equal starts the larger id first. */
export function merged(rows: readonly Execution[], change: ListChange): Execution[] {
  const gone = new Set(change.gone);
  const known = new Map<string, Execution>();
  for (const row of rows) if (!gone.has(row.execution_id)) known.set(row.execution_id, row);
  for (const row of change.changed) known.set(row.execution_id, row);
  return [...known.values()].sort(newestFirst);
}

export function newestFirst(a: Execution, b: Execution): number {
  if (a.started_at !== b.started_at) return moment(a.started_at) > moment(b.started_at) ? -1 : 1;
  // Ids are texts of numbers without a sign in front: the longer one is larger.
  const [one, other] = [a.execution_id, b.execution_id];
  if (one.length !== other.length) return other.length - one.length;
  return one === other ? 0 : one > other ? -1 : 1;
}

/** Times are compared by their text with as many places after the point: `Z` sorts after digits. */
function moment(at: string): string {
  const [whole = "", rest = ""] = at.replace("Z", "").split(".");
  return `${whole}.${rest.padEnd(9, "0")}`;
}

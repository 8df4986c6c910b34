// What can be written at a place of a document. Documents under the hand are rarely whole, so places are
// found by indentation instead of by parsing.

import table from "./words.json";

export interface Word {
  label: string;
  /** What it means, in a few words. */
  detail: string;
}

export interface Offer {
  /** Where the word that is being written begins. */
  from: number;
  words: Word[];
  /** Whether keys are offered, behind which a colon comes. */
  keys: boolean;
}

type Words = Record<string, string>;

const KEYS: Record<string, Words> = table.keys;
const TOOLS: Record<string, Words> = table.tools;
const VALUES: Record<string, string[]> = table.values;
const COMMON = ["kind", "name", "input", "auth", "timeout", "set", "spec"];

/** A line with a key: where its dash and its key stand, and what follows. */
interface Line {
  dash: number | null;
  column: number;
  key: string | null;
  rest: string;
}

const LINE = /^(\s*)((?:- +)*)(?:"?([A-Za-z_][\w.-]*)"?\s*:(?=\s|$))?\s*(.*)$/;

function read(line: string): Line | null {
  if (/^\s*(#|$)/.test(line)) return null;
  const [, indent = "", dashes = "", key, rest = ""] = LINE.exec(line) ?? [];
  return {
    dash: dashes === "" ? null : indent.length,
    column: indent.length + dashes.length,
    key: key ?? null,
    rest,
  };
}

/** What may stand at `at` of a text; nothing where only the writer knows. */
export function offered(text: string, at: number): Offer | null {
  const start = text.lastIndexOf("\n", at - 1) + 1;
  const before = text.slice(start, at);
  const inTemplate = before.lastIndexOf("{{") > before.lastIndexOf("}}");
  const inQuotes = (before.match(/"/g)?.length ?? 0) % 2 === 1;
  if (/(^|\s)#/.test(before) || inTemplate || inQuotes) return null;
  const above = text.slice(0, start).split("\n");
  const below = text.slice(at).split("\n").slice(1);
  const line = read(before) ?? { dash: null, column: before.length, key: null, rest: "" };
  const parents = ancestors(above, line.column);
  const brace = before.lastIndexOf("{");
  if (brace > before.lastIndexOf("}")) return inBraces(text, at, before.slice(brace + 1), parents, line.key);
  const kind = siblings(above, below, line.column, line.dash !== null).get("kind") ?? null;
  if (line.key === null) return keysAt(text, at, line.rest, parents, kind);
  return valuesAt(text, at, line.rest, parents, line.key);
}

function inBraces(text: string, at: number, inside: string, parents: string[], key: string | null): Offer | null {
  const path = key === null ? parents : [...parents, key];
  const part = inside.slice(inside.lastIndexOf(",") + 1).trimStart();
  const [, named, value] = /^([A-Za-z_]\w*):\s*(.*)$/.exec(part) ?? [];
  if (named !== undefined) return valuesAt(text, at, value ?? "", path, named);
  const kind = /(?:^|,)\s*kind:\s*(\w+)/.exec(inside)?.[1] ?? null;
  return keysAt(text, at, part, path, kind);
}

function keysAt(text: string, at: number, written: string, parents: string[], kind: string | null): Offer | null {
  if (!/^[\w]*$/.test(written)) return null;
  const known = keysOf(place(parents, documentKind(text)), kind);
  if (known === null) return null;
  const words = Object.entries(known).map(([label, detail]) => ({ label, detail }));
  return { from: at - written.length, words, keys: true };
}

function valuesAt(text: string, at: number, written: string, parents: string[], key: string): Offer | null {
  if (!/^[\w./-]*$/.test(written)) return null;
  const where = place(parents, documentKind(text));
  let words: Word[] = (VALUES[`${where}.${key}`] ?? []).map((label) => ({ label, detail: "" }));
  if (where === "tool" && key === "kind") {
    words = Object.entries(table.kinds).map(([label, detail]) => ({ label, detail }));
  }
  if (where === "arc" && key === "step") words = steps(text).map((label) => ({ label, detail: "a step of this playbook" }));
  return words.length === 0 ? null : { from: at - written.length, words, keys: false };
}

/** The keys below which a line of this indentation stands, outermost first. */
function ancestors(above: string[], column: number): string[] {
  const found: string[] = [];
  let limit = column;
  for (const text of above.toReversed()) {
    if (limit <= 0) break;
    const line = read(text);
    if (line === null) continue;
    // A dash left of the limit is that of the item the line is in; its key is a neighbour.
    if (line.column < limit) {
      if (line.key === null) return [];
      found.unshift(line.key);
      limit = line.column;
    }
    if (line.dash !== null && line.dash < limit && line.column > limit) limit = line.dash + 1;
  }
  return found;
}

/** The keys beside a line, in the same mapping, with what follows each. */
function siblings(above: string[], below: string[], column: number, first: boolean): Map<string, string> {
  const found = new Map<string, string>();
  const take = (lines: string[], upwards: boolean) => {
    for (const text of lines) {
      const line = read(text);
      if (line === null || line.column > column) continue;
      if (line.column < column || (!upwards && line.dash !== null)) return;
      if (line.key !== null && !found.has(line.key)) found.set(line.key, line.rest.trim());
      if (line.dash !== null) return;
    }
  };
  if (!first) take(above.toReversed(), true);
  take(below, false);
  return found;
}

function documentKind(text: string): string {
  return /^kind:\s*"?(\w+)/m.exec(text)?.[1]?.toLowerCase() ?? "playbook";
}

/** The steps that a text has, by the names written there. */
function steps(text: string): string[] {
  const column = /^( *)- +step:/m.exec(text)?.[1]?.length;
  if (column === undefined) return [];
  const named = new RegExp(`^ {${column}}- +step: *"?([\\w.-]+)`, "gm");
  return [...new Set([...text.matchAll(named)].map((match) => match[1] ?? ""))];
}

/** The name of a place in the table of words. */
function place(parents: string[], kind: string): string {
  const [first, ...rest] = parents;
  if (first === undefined) return "root";
  if (first === "spec" && rest.length === 0 && kind !== "playbook") return kind;
  if (first === "workflow") return below("step", rest);
  if (first === "workbook") return rest[0] === "tool" ? below("tool", rest.slice(1)) : below("workbook", rest);
  return below(first, rest);
}

const TURNS: Record<string, string> = {
  "step.tool": "tool",
  "step.loop": "loop",
  "step.next": "next",
  "next.arcs": "arc",
  "tool.spec.policy.rules": "rule",
  "rule.then": "then",
  "rule.else": "then",
};

function below(where: string, path: string[]): string {
  let found = where;
  for (const key of path) {
    const next = `${found}.${key}`;
    // A task of a pipeline stands below its own name.
    if (found === "tool" && KEYS[next] === undefined) found = key === "input" || key === "set" ? next : "tool";
    else found = TURNS[next] ?? next;
  }
  return found;
}

function keysOf(where: string, kind: string | null): Words | null {
  if (where === "tool") {
    const known = kind === null ? undefined : TOOLS[kind];
    return known ?? Object.fromEntries(COMMON.map((key) => [key, TOOLS["noop"]?.[key] ?? ""]));
  }
  return Object.hasOwn(KEYS, where) ? (KEYS[where] ?? null) : null;
}

// A JSON value as rows: what is open is shown with what is in it.

import { ExactNumber, isObject, type Json } from "../api/json";

export interface JsonRow {
  /** Where it is: the keys that lead there. */
  path: string;
  depth: number;
  key: string | null;
  value: Json;
  /** How many things are in it; nothing for what holds none. */
  size: number | null;
  isOpen: boolean;
  /** For a row that stands for the rest of a long list: how many are not shown. */
  rest?: number;
}

/** How many things of one list or object are shown before the rest is asked for. */
export const SHOWN = 200;

/** Keys are joined so that no key can be taken for two. */
export const child = (path: string, key: string | number): string => `${path}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;

export function sizeOf(value: Json): number | null {
  if (Array.isArray(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : null;
}

/** The rows of a value, of which some paths are open, and more of some is shown. */
export function rowsOf(value: Json, open: ReadonlySet<string>, more: ReadonlyMap<string, number>): JsonRow[] {
  const rows: JsonRow[] = [];
  const visit = (one: Json, key: string | null, path: string, depth: number) => {
    const size = sizeOf(one);
    const isOpen = size !== null && size > 0 && open.has(path);
    rows.push({ path, depth, key, value: one, size, isOpen });
    if (!isOpen || size === null) return;
    const limit = more.get(path) ?? SHOWN;
    if (Array.isArray(one)) {
      for (let place = 0; place < Math.min(limit, size); place += 1) visit(one[place] ?? null, String(place), child(path, place), depth + 1);
    } else if (isObject(one)) {
      for (const name of Object.keys(one).slice(0, limit)) visit(one[name] ?? null, name, child(path, name), depth + 1);
    }
    if (size > limit) rows.push({ path: `${path}//`, depth: depth + 1, key: null, value: null, size: null, isOpen: false, rest: size - limit });
  };
  visit(value, null, "", 0);
  return rows;
}

/** One place that a search found, with what has to be open to see it. */
export interface Match {
  path: string;
  parents: { path: string; place: number }[];
}

/** Where keys or values hold a text, in any case; at most so many. */
export function search(value: Json, wanted: string, most = 500): Match[] {
  const found: Match[] = [];
  const needle = wanted.toLowerCase();
  if (needle === "") return found;
  const visit = (one: Json, key: string | null, path: string, parents: Match["parents"]) => {
    if (found.length >= most) return;
    const said = sizeOf(one) === null ? plain(one) : "";
    if (key?.toLowerCase().includes(needle) || said.toLowerCase().includes(needle)) found.push({ path, parents });
    if (Array.isArray(one)) {
      one.forEach((item, place) => visit(item, null, child(path, place), [...parents, { path, place }]));
    } else if (isObject(one)) {
      Object.entries(one).forEach(([name, item], place) => visit(item, name, child(path, name), [...parents, { path, place }]));
    }
  };
  visit(value, null, "", []);
  return found;
}

/** A value that holds no others, as its text. */
export function plain(value: Json): string {
  if (typeof value === "string") return value;
  return value instanceof ExactNumber ? value.text : String(value);
}

/** What is open at first: the top, and below it whatever is small. */
export function openAtFirst(value: Json): Set<string> {
  const open = new Set<string>([""]);
  const visit = (one: Json, path: string, depth: number) => {
    const size = sizeOf(one);
    if (size === null || depth > 3 || (depth > 0 && size > 20)) return;
    open.add(path);
    if (size > 50) return;
    if (Array.isArray(one)) one.forEach((item, place) => visit(item, child(path, place), depth + 1));
    else if (isObject(one)) Object.entries(one).forEach(([name, item]) => visit(item, child(path, name), depth + 1));
  };
  visit(value, "", 0);
  return open;
}

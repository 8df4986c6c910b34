// The values of a run dialog. What is left as the document has it is not sent, so that the document's own
// templates and defaults keep their say.

import type { FormField } from "../../api/catalog";
import { isObject, parse, stringify, type Json } from "../../api/json";

/** Typed texts by the field's path. A field that was never edited has no entry. */
export type Typed = Record<string, string>;

export interface Filled {
  payload: { [key: string]: Json };
  /** What is wrong, by the place of the field. */
  errors: Record<string, string>;
}

/** The name of a place: keys may hold dots, so they are kept apart. */
export function placeOf(path: string[]): string {
  return JSON.stringify(path);
}

/** Whether a field is filled in by those within it. */
export function hasChildren(field: FormField): field is FormField & { children: FormField[] } {
  return field.kind === "object" && (field.children?.length ?? 0) > 0;
}

/** What a field shows before anybody typed. */
export function initial(field: FormField): string {
  const { kind, default: value } = field;
  if (kind === "enum" || kind === "array" || kind === "object") return stringify(value, kind === "enum" ? 0 : 2);
  if (typeof value === "string") return value;
  return value === null ? "" : stringify(value);
}

/** The payload that was typed, and what is wrong with it. */
export function filled(fields: FormField[], typed: Typed, path: string[] = []): Filled {
  const payload: { [key: string]: Json } = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const here = [...path, field.name];
    if (hasChildren(field)) {
      const inner = filled(field.children, typed, here);
      Object.assign(errors, inner.errors);
      if (Object.keys(inner.payload).length > 0) set(payload, field.name, inner.payload);
      continue;
    }
    const text = typed[placeOf(here)];
    if (text === undefined || text === initial(field)) continue;
    const read = value(field, text);
    if (typeof read === "string") errors[placeOf(here)] = read;
    else set(payload, field.name, read.value);
  }
  return { payload, errors };
}

/** Sets a key that may be called `__proto__`. */
function set(object: { [key: string]: Json }, key: string, value: Json) {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** What a text says for a field, or what is wrong with it. */
function value(field: FormField, text: string): { value: Json } | string {
  const trimmed = text.trim();
  switch (field.kind) {
    case "integer":
      return /^[+-]?\d+$/.test(trimmed) ? number(trimmed) : "Write a whole number.";
    case "number":
      return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(trimmed) ? number(trimmed) : "Write a number, as 2.5.";
    case "boolean":
      return { value: text === "true" };
    case "enum":
      return json(text, () => true, "Choose one.");
    case "object":
      return json(text, isObject, 'Write an object in JSON, as {"key": "value"}.');
    case "array":
      return json(text, Array.isArray, 'Write a list in JSON, as ["a", "b"].');
    case "null":
      return anything(text);
    default:
      return { value: text };
  }
}

/** Where the document has nothing, JSON is JSON and anything else is text. */
function anything(text: string): { value: Json } {
  try {
    return { value: parse(text) };
  } catch {
    return { value: text };
  }
}

function number(text: string): { value: Json } {
  const plain = text.replace(/^\+/, "").replace(/^(-?)0+(?=\d)/, "$1").replace(/^(-?)\./, "$10.").replace(/\.(?=$|[eE])/, "");
  return { value: parse(plain) };
}

function json(text: string, fits: (value: Json) => boolean, wrong: string): { value: Json } | string {
  try {
    const value = parse(text);
    return fits(value) ? { value } : wrong;
  } catch (failure) {
    return `${wrong} ${failure instanceof Error ? failure.message : ""}`.trim();
  }
}

/** A payload written as JSON; it has to be an object. */
export function payloadOf(text: string): { value: { [key: string]: Json } } | string {
  if (text.trim() === "") return { value: {} };
  const read = json(text, isObject, 'A payload is an object in JSON, as {"who": "Ada"}.');
  return typeof read === "string" ? read : { value: read.value as { [key: string]: Json } };
}

/** Whether a name fits a pattern with `*` and `?`, whatever else is in it. */
export function fitsGlob(name: string, glob: string): boolean {
  const pattern = glob.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  return new RegExp(`^${pattern}$`, "s").test(name);
}

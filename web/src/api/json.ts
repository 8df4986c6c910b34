// JSON without losing digits. Ids and users' numbers have up to 64 bits, and `JSON.parse` rounds
// what is above 2^53. A whole number it would round becomes an `ExactNumber` instead.

/** A number that a JavaScript number cannot hold, kept as it was written. */
export class ExactNumber {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }

  toJSON(): string {
    return this.text;
  }
}

/** Whatever JSON can say. */
export type Json = null | boolean | number | string | ExactNumber | Json[] | { [key: string]: Json };

// Marks a number that was put in quotes; a text that begins with it by itself gets another one.
const MARK = "\ue000";
const LONG = /\d{16}/;
// Neither the part of a number behind its point nor its exponent is a whole number.
const NUMBER = /(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Reads JSON text. Throws a SyntaxError for what is none. */
export function parse(text: string): Json {
  if (!LONG.test(text)) return JSON.parse(text) as Json;
  const marked = quoted(text);
  // Most long digits are ids, which are texts already: such an answer is read without looking at each value.
  if (marked === null) return JSON.parse(text) as Json;
  return JSON.parse(marked, (_key, value: unknown) => {
    if (typeof value !== "string" || !value.startsWith(MARK)) return value;
    return value.startsWith(MARK + MARK) ? value.slice(1) : new ExactNumber(value.slice(1));
  }) as Json;
}

/** The text with every whole number that would be rounded in quotes, and marked; nothing when there is none. */
function quoted(text: string): string | null {
  const parts: string[] = [];
  let at = 0;
  let is = false;
  const marked = (number: string): string => {
    if (String(Number(number)) === number) return number;
    is = true;
    return `"${MARK}${number}"`;
  };
  while (at < text.length) {
    const quote = text.indexOf('"', at);
    const end = quote < 0 ? text.length : quote;
    parts.push(text.slice(at, end).replace(NUMBER, marked));
    if (quote < 0) break;
    const close = closing(text, quote);
    const starts = text.startsWith(MARK, quote + 1) || text.startsWith("\\u", quote + 1);
    const string = text.slice(quote, close + 1);
    parts.push(starts && isMarked(string) ? `"${MARK}${string.slice(1)}` : string);
    at = close + 1;
  }
  return is ? parts.join("") : null;
}

function isMarked(string: string): boolean {
  return string.startsWith(`"${MARK}`) || /^"\\u[eE]000/.test(string);
}

/** Where the text that begins at this quote ends. */
function closing(text: string, quote: number): number {
  let end = quote;
  for (;;) {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return end;
  }
}

/** Writes JSON, exact numbers as they were read. */
export function stringify(value: Json, indent = 0): string {
  return write(value, indent, "");
}

function write(value: Json, indent: number, margin: string): string {
  if (value instanceof ExactNumber) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = margin + " ".repeat(indent);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const items = Array.isArray(value)
    ? value.map((item) => write(item, indent, inner))
    : Object.entries(value).map(
        ([key, item]) => `${JSON.stringify(key)}:${indent ? " " : ""}${write(item, indent, inner)}`,
      );
  if (items.length === 0) return `${open}${close}`;
  if (indent === 0) return `${open}${items.join(",")}${close}`;
  return `${open}\n${items.map((item) => inner + item).join(",\n")}\n${margin}${close}`;
}

/** Whether it is an object of JSON: neither a list, nor nothing, nor a number. */
export function isObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** A field of what may be an object. */
export function field(value: Json | undefined, ...path: string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const key of path) {
    if (!isObject(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return found;
}

/** A text or a number as text; nothing for anything else. */
export function text(value: Json | undefined): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || value instanceof ExactNumber) return String(value);
  return undefined;
}

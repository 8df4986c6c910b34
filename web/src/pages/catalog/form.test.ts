import { describe, expect, it } from "vitest";

import type { FormField } from "../../api/catalog";
import { stringify } from "../../api/json";
import { filled, fitsGlob, payloadOf, placeOf } from "./form";

const field = (name: string, kind: string, value: FormField["default"], more: Partial<FormField> = {}): FormField => ({
  name, kind, default: value, description: null, secret: false, credential_glob: null, options: null, children: null, ...more,
});
const fill = (fields: FormField[], typed: [string[], string][]) =>
  filled(fields, Object.fromEntries(typed.map(([path, text]) => [placeOf(path), text])));

describe("filled", () => {
  it("sends what differs and nothing else", () => {
    const fields = [
      field("who", "string", "world"),
      field("count", "integer", 3),
      field("deep", "object", {}, { children: [field("a", "boolean", false), field("b", "number", 1.5)] }),
    ];
    expect(fill(fields, [])).toEqual({ payload: {}, errors: {} });
    expect(fill(fields, [[["who"], "world"], [["count"], "4"], [["deep", "a"], "true"]])).toEqual({
      payload: { count: 4, deep: { a: true } },
      errors: {},
    });
    expect(fill(fields, [[["who"], ""]]).payload).toEqual({ who: "" });
  });

  it("keeps every digit", () => {
    const fields = [field("id", "integer", 0)];
    expect(stringify(fill(fields, [[["id"], "380791883141480449"]]).payload)).toBe('{"id":380791883141480449}');
    expect(stringify(fill(fields, [[["id"], "+007"]]).payload)).toBe('{"id":7}');
  });

  it("says what is wrong and where", () => {
    const fields = [field("n", "integer", 0), field("x", "number", 0), field("l", "array", []), field("o", "object", {})];
    const typed: [string[], string][] = [[["n"], "1.5"], [["x"], "five"], [["l"], "{}"], [["o"], "[1"]];
    const { payload, errors } = fill(fields, typed);
    expect(payload).toEqual({});
    expect(Object.keys(errors)).toEqual(["n", "x", "l", "o"].map((name) => placeOf([name])));
    expect(fill(fields, [[["x"], "-.5e3"]]).payload).toEqual({ x: -500 });
  });

  it("keeps apart keys with dots, and takes any name for a key", () => {
    const fields = [field("a.b", "string", "1"), field("a", "object", {}, { children: [field("b", "string", "2")] }), field("__proto__", "string", "")];
    const { payload } = fill(fields, [[["a.b"], "x"], [["a", "b"], "y"], [["__proto__"], "z"]]);
    expect(Object.entries(payload)).toEqual([["a.b", "x"], ["a", { b: "y" }], ["__proto__", "z"]]);
  });

  it("reads what may be anything as JSON, else as text", () => {
    const fields = [field("any", "null", null)];
    expect(fill(fields, [[["any"], "[1]"]]).payload).toEqual({ any: [1] });
    expect(fill(fields, [[["any"], "[1"]]).payload).toEqual({ any: "[1" });
  });
});

it("a payload is an object", () => {
  expect(payloadOf("")).toEqual({ value: {} });
  expect(payloadOf('{"a": 1}')).toEqual({ value: { a: 1 } });
  for (const wrong of ["[1]", "7", "{"]) expect(typeof payloadOf(wrong), wrong).toBe("string");
});

it("a pattern of credentials fits names", () => {
  expect(fitsGlob("pg_main", "pg_*")).toBe(true);
  expect(fitsGlob("pg", "pg_*")).toBe(false);
  expect(fitsGlob("a.b", "a?b")).toBe(true);
  expect(fitsGlob("axb", "a.b")).toBe(false);
});

import { describe, expect, it } from "vitest";

import { ExactNumber, field, parse, stringify, text } from "./json";

describe("parse", () => {
  it("keeps every digit of a 64-bit id", () => {
    const read = parse('{"id": 380791883141480449, "small": 7, "list": [-9223372036854775808, 1.5]}');
    expect(text(field(read, "id"))).toBe("380791883141480449");
    expect(field(read, "small")).toBe(7);
    expect(stringify(read)).toBe('{"id":380791883141480449,"small":7,"list":[-9223372036854775808,1.5]}');
  });

  it("leaves digits inside texts alone, whatever quotes and slashes surround them", () => {
    const said = { a: '"380791883141480449', b: "\\", c: '\\"12345678901234567890', d: "}{" };
    expect(parse(JSON.stringify(said))).toEqual(said);
  });

  it("leaves a text that looks like a marked number a text", () => {
    const said = { a: "\ue000380791883141480449", b: "\ue000\ue0001", n: "1234567890123456" };
    expect(parse(JSON.stringify(said))).toEqual(said);
    expect(parse('["\\ue000380791883141480449"]')).toEqual(["\ue000380791883141480449"]);
  });

  it("leaves a number that is exact a number", () => {
    expect(parse("[9007199254740991, 1234567890123456.5, 1e300, 12345678901234567e2]")).toEqual([
      9007199254740991, 1234567890123456.5, 1e300, 12345678901234567e2,
    ]);
    expect(parse("[9007199254740993]")).toEqual([new ExactNumber("9007199254740993")]);
  });

  it("leaves what stands behind a point or in an exponent alone", () => {
    const said = "[1.9519999999999999, -0.1234567890123456789, 1e-00000000000000001, 2E+0000000000000000]";
    expect(parse(said)).toEqual(JSON.parse(said));
  });

  it("refuses what is no JSON", () => {
    for (const wrong of ["", "{", '{"a": 380791883141480449', '"380791883141480449', "[1234567890123456789,]"]) {
      expect(() => parse(wrong), wrong).toThrow(SyntaxError);
    }
  });
});

it("stringify indents as people read it", () => {
  expect(stringify({ a: [1, {}], b: [] }, 2)).toBe('{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}');
});

it("a field that an object only inherits is none", () => {
  expect(field({ a: 1 }, "toString")).toBeUndefined();
  expect(field([1], "length")).toBeUndefined();
});

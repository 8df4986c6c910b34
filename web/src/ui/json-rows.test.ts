import { describe, expect, it } from "vitest";

import { parse, type Json } from "../api/json";
import { child, openAtFirst, rowsOf, search, SHOWN } from "./json-rows";

describe("rows", () => {
  const value: Json = { a: [1, { b: "x" }], "a/0": "<script>alert(1)</script>" };

  it("show what is open", () => {
    expect(rowsOf(value, new Set(), new Map()).length).toBe(1);
    const rows = rowsOf(value, new Set(["", "/a"]), new Map());
    expect(rows.map((row) => row.path)).toEqual(["", "/a", "/a/0", "/a/1", "/a~10"]);
  });

  it("show a long list in pieces", () => {
    const long = Array.from({ length: 1000 }, (_, place) => place);
    const rows = rowsOf(long, new Set([""]), new Map());
    expect([rows.length, rows.at(-1)?.rest]).toEqual([SHOWN + 2, 800]);
    expect(rowsOf(long, new Set([""]), new Map([["", 5000]])).length).toBe(1001);
  });

  it("open at first what is small", () => {
    expect(openAtFirst(value).has("/a/1")).toBe(true);
    expect(openAtFirst({ rows: Array.from({ length: 100 }, () => 1) }).has("/rows")).toBe(false);
  });
});

it("a search finds keys, texts and long numbers, in any case", () => {
  const value = parse('{"Name": "Ada", "list": [{"id": 380791883141480449}, "ADA"]}');
  expect(search(value, "ada").map((match) => match.path)).toEqual(["/Name", "/list/1"]);
  expect(search(value, "80449").map((match) => match.path)).toEqual(["/list/0/id"]);
  expect(search(value, "name").length).toBe(1);
  expect(search(value, "").length).toBe(0);
  expect(search(value, "a", 1).length).toBe(1);
});

it("paths of different keys differ", () => {
  expect(child("", "a/b")).not.toBe(child(child("", "a"), "b"));
  expect(child("", "~1")).not.toBe(child("", "/"));
});

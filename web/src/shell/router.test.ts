import { describe, expect, it } from "vitest";

import { changed, matched } from "./router";

describe("matched", () => {
  it("names the parts of an address", () => {
    expect(matched("/executions/:id", "/executions/380791883141480448")).toEqual({ id: "380791883141480448" });
    expect(matched("/executions/:id", "/executions/")).toBeNull();
    expect(matched("/executions", "/executions/7")).toBeNull();
    expect(matched("/catalog/*path", "/catalog/a%2Fb/c")).toEqual({ path: "a/b/c" });
    expect(matched("/catalog/*path", "/catalog")).toBeNull();
    expect(matched("/", "/")).toEqual({});
  });

  it("takes an address that cannot be decoded as it is", () => {
    expect(matched("/executions/:id", "/executions/%zz")).toEqual({ id: "%zz" });
  });
});

it("a change keeps the other parameters", () => {
  expect(changed("?a=1&b=2", { b: "3", a: null })).toBe("?b=3");
  expect(changed("", { text: "a b&c" })).toBe("?text=a+b%26c");
  expect(changed("?a=1", { a: "" })).toBe("");
});

import { describe, expect, it } from "vitest";

import { levels, means, rates, samples, total, type Reading } from "./prometheus";

describe("samples", () => {
  it("are read with their labels", () => {
    const text = `# HELP a What it is
# TYPE a counter
a 5
b{pool="shared",le="+Inf"} 1.5e3
c{text="a \\"b\\", {c}=\\\\ \\n"} +Inf 1700000000000
`;
    expect(samples(text)).toEqual([
      { name: "a", labels: {}, value: 5 },
      { name: "b", labels: { pool: "shared", le: "+Inf" }, value: 1500 },
      { name: "c", labels: { text: 'a "b", {c}=\\ \n' }, value: Infinity },
    ]);
  });

  it("that cannot be read are left out", () => {
    expect(samples("<html>\na b\na{x=1} 2\n{} 3\nok 1\n")).toEqual([{ name: "ok", labels: {}, value: 1 }]);
  });
});

const readings = (...texts: string[]): Reading[] => texts.map((text, place) => ({ at: place * 2000, samples: samples(text) }));

it("a total adds up what labels part, and is nothing without samples", () => {
  const all = samples('n{a="1"} 2\nn{a="2"} 3\nn{a="3"} NaN');
  expect(total(all, "n")).toBe(5);
  expect(total(all, "m")).toBeNull();
});

it("rates are per second, and a counter that was reset has none", () => {
  expect(rates(readings("n 10", "n 14", "n 1", "n 3"), "n")).toEqual([2, null, 1]);
  expect(rates(readings("n 10"), "n")).toEqual([]);
});

it("means are of what was measured between readings", () => {
  const all = readings("d_sum 1\nd_count 10", "d_sum 3\nd_count 14", "d_sum 3\nd_count 14");
  expect(means(all, "d")).toEqual([0.5, null]);
});

it("levels are as they were", () => {
  expect(levels(readings("g 1", "h 2"), "g")).toEqual([1, null]);
});

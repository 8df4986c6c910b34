import { describe, expect, it } from "vitest";

import { difference, folded } from "./diff";

const SIGNS = { same: " ", gone: "-", new: "+" };
const written = (older: string, newer: string) => difference(older, newer).map((one) => SIGNS[one.kind] + one.text);

describe("difference", () => {
  it("names what went and what came", () => {
    expect(written("a\nb\nc", "a\nx\nc")).toEqual([" a", "-b", "+x", " c"]);
    expect(written("a\nb\nc\nd", "b\nc\ne\nd")).toEqual(["-a", " b", " c", "+e", " d"]);
    expect(written("", "a")).toEqual(["-", "+a"]);
    expect(written("a\nb", "a\nb")).toEqual([" a", " b"]);
  });

  it("gives both texts back, whatever they are", () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % below;
    for (let round = 0; round < 200; round += 1) {
      const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)]).join("\n");
      const [older, newer] = [text(), text()];
      const changes = difference(older, newer);
      expect(changes.filter((one) => one.kind !== "new").map((one) => one.text).join("\n")).toBe(older);
      expect(changes.filter((one) => one.kind !== "gone").map((one) => one.text).join("\n")).toBe(newer);
    }
  });

  it("numbers lines in both", () => {
    expect(difference("a\nb", "x\na\nb").map((one) => [one.older, one.newer])).toEqual([[null, 1], [1, 2], [2, 3]]);
  });

  it("does not look for the shortest account of texts that have little in common", () => {
    const older = Array.from({ length: 5000 }, (_, n) => `a${n}`).join("\n");
    const newer = Array.from({ length: 5000 }, (_, n) => `b${n}`).join("\n");
    expect(difference(older, newer)).toHaveLength(10_000);
  });
});

it("folded leaves out what is far from every change", () => {
  const older = Array.from({ length: 20 }, (_, n) => `${n}`).join("\n");
  const shown = folded(difference(older, older.replace("10", "ten")), 2);
  expect(shown.map((one) => (typeof one === "number" ? one : one.text))).toEqual([8, "8", "9", "10", "ten", "11", "12", 7]);
});

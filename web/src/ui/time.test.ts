import { expect, it } from "vitest";

import { ago, duration } from "./time";
import { both, clock } from "./zone";

it("lengths of time are said as people say them", () => {
  expect([0, 999, 1500, 61_000, 3_723_000, 180_000_000].map(duration)).toEqual([
    "0 ms", "999 ms", "1.5 s", "1 min 1 s", "1 h 2 min", "2 d 2 h",
  ]);
  expect(duration(-5)).toBe("0 ms");
  expect(duration(Number.NaN)).toBe("");
  expect([200, 5_400, 61_000].map(ago)).toEqual(["now", "5 s ago", "1 min 1 s ago"]);
});

it("times are told in local time or in UTC, and what is no time as it is", () => {
  // The tests run in UTC; where clocks differ only the digits do.
  expect(clock("2026-11-16T19:59:28.4321Z", "UTC")).toBe("2026-11-16 19:59:28.432");
  expect(clock("2026-11-16T19:59:28+02:00", "UTC")).toBe("2026-11-16 17:59:28.000");
  expect(clock("2026-11-16T19:59:28+02:00", "local")).toMatch(/^2026-11-1[67] \d\d:\d\d:28\.000$/);
  expect(both("never")).toBe("never local, never UTC");
});

import { describe, expect, it } from "vitest";

import type { Execution } from "../../api/types";
import { filterOf, isNarrow, paramsOf } from "./filter";
import { merged } from "./merge";

function row(execution_id: string, started_at: string, status: Execution["status"] = "RUNNING"): Execution {
  return {
    execution_id, started_at, status, catalog_id: "1", path: "a", version: 1, completed_at: null, duration_seconds: null,
    progress: 0, event_count: 1, parent_execution_id: null, error: null,
  };
}

describe("merged", () => {
  const rows = [row("20", "2026-01-01T00:00:02Z"), row("10", "2026-01-01T00:00:01Z")];
  const ids = (list: Execution[]) => list.map((one) => one.execution_id);

  it("puts what is new in its place and changes what is known", () => {
    const after = merged(rows, { changed: [row("10", "2026-01-01T00:00:01Z", "FAILED"), row("15", "2026-01-01T00:00:01.5Z")], gone: [] });
    expect(ids(after)).toEqual(["20", "15", "10"]);
    expect(after[2]?.status).toBe("FAILED");
  });

  it("takes out what is gone, and a repeat changes nothing", () => {
    const change = { changed: rows, gone: ["7"] };
    expect(merged(merged(rows, change), change)).toEqual(rows);
    expect(ids(merged(rows, { changed: [], gone: ["20"] }))).toEqual(["10"]);
  });

  it("orders equal starts by id as numbers, beyond what a number holds", () => {
    const at = "2026-01-01T00:00:00Z";
    const after = merged([], { changed: [row("380791883141480448", at), row("99", at), row("380791883141480449", at)], gone: [] });
    expect(ids(after)).toEqual(["380791883141480449", "380791883141480448", "99"]);
  });

  it("orders a time with fewer places after one with more", () => {
    const after = merged([], { changed: [row("1", "2026-01-01T00:00:00Z"), row("2", "2026-01-01T00:00:00.1Z"), row("3", "2026-01-01T00:00:00.12Z")], gone: [] });
    expect(ids(after)).toEqual(["3", "2", "1"]);
  });
});

describe("a filter", () => {
  it("comes from the address, and nonsense in it is nothing", () => {
    const filter = filterOf(new URLSearchParams("status=failed&since=1h&text=a+b&path=x"));
    const now = Date.parse("2026-01-01T01:00:00Z");
    expect(paramsOf(filter, now)).toEqual({
      status: "FAILED", path: "x", text: "a b", started_after: "2026-01-01T00:00:00.000Z", started_before: null,
    });
    expect(isNarrow(filterOf(new URLSearchParams("status=nope&since=toString")))).toBe(false);
    expect(paramsOf(filterOf(new URLSearchParams("from=never")), now)["started_after"]).toBeNull();
  });
});

// @vitest-environment happy-dom
import { afterEach, expect, it, vi } from "vitest";

import { run } from "./sse";

afterEach(() => vi.useRealTimers());

function turn(hidden: boolean): void {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}

it("a hidden tab closes its connection and resumes from the last event when it is visible", async () => {
  vi.useFakeTimers();
  const asked: (string | null)[] = [];
  const heard: string[] = [];
  const encoder = new TextEncoder();
  const fetch = (async (_url: unknown, init: RequestInit) => {
    asked.push(new Headers(init.headers).get("last-event-id"));
    const first = asked.length === 1;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(encoder.encode(first ? "id: 7\ndata: a\n\n" : "id: 8\ndata: b\n\nevent: end\ndata: x\n\n"));
        // The first one stays open until it is given up.
        if (first) init.signal?.addEventListener("abort", () => controller.error(new DOMException("gone", "AbortError")));
        else controller.close();
      },
    });
    return { ok: true, status: 200, body } as Response;
  }) as typeof globalThis.fetch;
  const links: string[] = [];
  const listener = { message: (_: string, data: string) => void heard.push(data), link: (link: string) => void links.push(link) };
  const over = run("/stream", listener, { fetch, last: "end" }, new AbortController().signal);
  await vi.advanceTimersByTimeAsync(10);
  turn(true);
  await vi.advanceTimersByTimeAsync(10_000);
  turn(false);
  turn(true);
  await vi.advanceTimersByTimeAsync(31_000);
  expect([asked, heard]).toEqual([[null], ["a"]]);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(asked.length).toBe(1);
  turn(false);
  await vi.advanceTimersByTimeAsync(10);
  await over;
  expect([asked, heard]).toEqual([[null, "7"], ["a", "b", "x"]]);
  expect(links).not.toContain("lost");
});

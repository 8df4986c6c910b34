import { describe, expect, it } from "vitest";

import { events, run, type Link } from "./sse";

function body(...chunks: string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      chunks.forEach((chunk) => controller.enqueue(encoder.encode(chunk)));
      controller.close();
    },
  });
}

async function all(...chunks: string[]) {
  const found = [];
  for await (const event of events(body(...chunks))) found.push(event);
  return found;
}

describe("events", () => {
  it("are read however they are cut", async () => {
    const whole = 'id: 4\r\ndata: {"a":\r\ndata: 1}\r\n\r\n: beat\n\nevent: end\ndata: é\n\n';
    const wanted = [
      { event: "message", data: '{"a":\n1}', id: "4" },
      { event: "end", data: "é", id: "" },
    ];
    expect(await all(whole)).toEqual(wanted);
    expect(await all(...whole)).toEqual(wanted);
  });

  it("that are cut off are none", async () => {
    expect(await all("data: 1\n\ndata: 2\n")).toEqual([{ event: "message", data: "1", id: "" }]);
  });
});

/** A server that answers each time with the next of these. */
function server(answers: (Response | Error)[]) {
  const asked: (string | null)[] = [];
  const fetch = async (_url: unknown, init?: RequestInit) => {
    asked.push(new Headers(init?.headers).get("last-event-id"));
    const next = answers.shift();
    if (next === undefined) throw new Error("asked too often");
    if (next instanceof Error) throw next;
    return next;
  };
  return { asked, fetch: fetch as typeof globalThis.fetch };
}

async function followed(answers: (Response | Error)[]) {
  const { asked, fetch } = server(answers);
  const heard: string[] = [];
  const links: Link[] = [];
  const waits: number[] = [];
  const listener = {
    message: (event: string, data: string) => void heard.push(`${event} ${data}`),
    link: (link: Link) => void links.push(link),
  };
  const wait = async (ms: number) => void waits.push(ms);
  await run("/stream", listener, { fetch, wait, last: "end" }, new AbortController().signal);
  return { asked, heard, links, waits };
}

describe("run", () => {
  it("reconnects after a restart from the last event and loses nothing", async () => {
    const { asked, heard, links, waits } = await followed([
      new Response(body("id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: hal")),
      new TypeError("refused"),
      new Response("starting", { status: 503 }),
      new Response(body("id: 3\ndata: c\n\nevent: end\ndata: x\n\n")),
    ]);
    expect(heard).toEqual(["message a", "message b", "message c", "end x"]);
    expect(asked).toEqual([null, "2", "2", "2"]);
    expect(links.at(-1)).toBe("over");
    expect(waits).toEqual([250, 500, 1000]);
  });

  it("does not reconnect after a permanent rejection", async () => {
    const { asked, links } = await followed([new Response("{}", { status: 404 })]);
    expect([asked.length, links]).toEqual([1, ["connecting", "lost"]]);
  });
});

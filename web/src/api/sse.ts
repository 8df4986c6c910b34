// Server-sent events over `fetch`, because `EventSource` can show no token. A connection that is lost
// is made again, from the last event on, for as long as there is a listener.

import { address, ApiError, headers, refusal, shown, type Params } from "./client";

/** How a stream is doing. */
export type Link = "connecting" | "open" | "lost" | "over";

export interface Listener {
  /** One event, with its type and what it carries. */
  message(event: string, data: string, id: string): void;
  /** How the connection is doing; why, when it is lost. */
  link?(link: Link, why?: ApiError): void;
}

export interface Options {
  params?: Params;
  /** Where the reader is already; sent as `Last-Event-ID`. */
  after?: string | undefined;
  /** The event after which nothing follows. */
  last?: string;
  fetch?: typeof fetch;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Waits between tries: at first hardly, then up to this. */
const RETRY_MS = { first: 250, most: 10_000 };
/** The server says something every 15 s; one that said nothing for so long is gone without a word. */
const SILENCE_MS = 45_000;
/** A browser holds six connections to a server, for all its tabs together: a tab hidden for this long closes its own. */
const HIDDEN_MS = 30_000;

/** Follows a stream until the answer is called. */
export function follow(path: string, listener: Listener, options: Options = {}): () => void {
  const stop = new AbortController();
  void run(path, listener, options, stop.signal);
  return () => stop.abort();
}

/** The same, until it is over, stopped, or refused for good. */
export async function run(path: string, listener: Listener, options: Options, stop: AbortSignal): Promise<void> {
  const ask = options.fetch ?? fetch;
  const wait = options.wait ?? pause;
  let last = options.after ?? "";
  let delay = RETRY_MS.first;
  for (;;) {
    await looked(stop);
    if (stop.aborted) return;
    listener.link?.("connecting");
    let why: ApiError;
    const silence = new AbortController();
    let hid = false;
    const unwatch = hidden(HIDDEN_MS, () => {
      hid = true;
      silence.abort();
    });
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    try {
      const said = await ask(address(path, options.params), {
        headers: { ...headers(), accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) },
        signal: AbortSignal.any([stop, silence.signal]),
        cache: "no-store",
      });
      if (!said.ok) throw await refusal(said);
      if (!said.body) throw new ApiError(said.status, "unreadable", "The stream has no body.");
      listener.link?.("open");
      let over = false;
      for await (const event of events(said.body, heard)) {
        delay = RETRY_MS.first;
        if (event.id) last = event.id;
        if (stop.aborted) return;
        listener.message(event.event, event.data, event.id);
        if (options.last !== undefined && event.event === options.last) over = true;
      }
      if (over) {
        listener.link?.("over");
        return;
      }
      why = new ApiError(0, "unreachable", "The connection to the server ended.");
    } catch (failure) {
      if (stop.aborted) return;
      const gone = failure instanceof TypeError || silence.signal.aborted;
      why = gone ? new ApiError(0, "unreachable", "The server cannot be reached.") : shown(failure);
    } finally {
      clearTimeout(timer);
      unwatch();
    }
    if (hid) continue;
    listener.link?.("lost", why);
    if (!why.passes) return;
    await wait(delay, stop);
    delay = Math.min(delay * 2, RETRY_MS.most);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Whether there is a tab at all that can be out of sight. */
const isHidden = () => typeof document !== "undefined" && document.hidden;

/** Resolves when the tab is visible. */
function looked(stop: AbortSignal): Promise<void> {
  if (!isHidden()) return Promise.resolve();
  return new Promise((resolve) => {
    const changed = () => {
      if (isHidden() && !stop.aborted) return;
      document.removeEventListener("visibilitychange", changed);
      resolve();
    };
    document.addEventListener("visibilitychange", changed);
    stop.addEventListener("abort", changed, { once: true });
  });
}

/** Tells when the tab was out of sight for so long. */
function hidden(ms: number, told: () => void): () => void {
  if (typeof document === "undefined") return () => undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const changed = () => {
    clearTimeout(timer);
    if (isHidden()) timer = setTimeout(told, ms);
  };
  changed();
  document.addEventListener("visibilitychange", changed);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", changed);
  };
}

interface Event {
  event: string;
  data: string;
  id: string;
}

/** The events in a body, as the standard has them; `heard` is told of every piece that comes. */
export async function* events(body: ReadableStream<Uint8Array>, heard?: () => void): AsyncGenerator<Event> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let event: Event = { event: "message", data: "", id: "" };
  let has = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      heard?.();
      rest += decoder.decode(value, { stream: !done });
      // A carriage return at the very end may be half of a line's end.
      const whole = done ? rest : rest.replace(/\r$/, "");
      const lines = whole.split(/\r\n|\n|\r/);
      rest = (lines.pop() ?? "") + rest.slice(whole.length);
      for (const line of lines) {
        if (line === "") {
          if (has) yield event;
          event = { event: "message", data: "", id: "" };
          has = false;
          continue;
        }
        const colon = line.indexOf(":");
        if (colon === 0) continue;
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") {
          event.data = has ? `${event.data}\n${value}` : value;
          has = true;
        } else if (name === "event") event.event = value;
        else if (name === "id") event.id = value;
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

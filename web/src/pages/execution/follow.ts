// The log of an execution, whole and growing: read in pages up to its end, then followed.

import { useEffect, useRef, useState } from "react";

import { ask, shown, type ApiError } from "../../api/client";
import { parse } from "../../api/json";
import { run, type Link } from "../../api/sse";
import type { EventsReply, EventView } from "../../api/types";
import { Story } from "../../model/story";

/** Events asked for at a time; the server gives no more. */
const PAGE = 2000;
/** How many pages of a long log are asked for at the same time. */
const AHEAD = 3;
/** How often the page is drawn again while events come, at most; less often while a long log is being read, which has to be read first. */
const DRAW_MS = 120;
const LONG_DRAW_MS = 1000;
const LONG = 10_000;

export interface Following {
  story: Story;
  /** Grows with every change of the story, which is one and the same object. */
  version: number;
  /** How many events there are, as far as is known. */
  total: number;
  link: Link;
  error: ApiError | null;
  /** Whether everything that was there at the beginning has been read. */
  isRead: boolean;
  retry(): void;
}

export function useStory(id: string): Following {
  const story = useRef(new Story());
  const [state, setState] = useState({ version: 0, total: 0, link: "connecting" as Link, error: null as ApiError | null, isRead: false });
  const [tries, setTries] = useState(0);

  useEffect(() => {
    const stop = new AbortController();
    const told = story.current;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let pending: Partial<typeof state> = {};
    let isRead = false;
    const draw = (change: Partial<typeof state>) => {
      pending = { ...pending, ...change };
      timer ??= setTimeout(() => {
        timer = undefined;
        const now = pending;
        pending = {};
        setState((before) => ({ ...before, ...now, version: before.version + 1 }));
      }, !isRead && told.last > LONG ? LONG_DRAW_MS : DRAW_MS);
    };
    const read = (after: number) =>
      ask<EventsReply>(`/api/executions/${encodeURIComponent(id)}/events`, { params: { after, limit: PAGE, brief: true }, signal: stop.signal });
    void (async () => {
      try {
        // Places have no gaps in our own logs; where there are some, pages overlap, and what was taken is passed over.
        let asked = [{ after: told.last, reply: read(told.last) }];
        let total = 0;
        for (let next = asked.shift(); next; next = asked.shift()) {
          if (next.after > told.last) {
            // The page before was shorter than asked for: what lies between comes first.
            asked = [{ after: told.last, reply: read(told.last) }];
            continue;
          }
          const reply = await next.reply;
          told.take(reply.events);
          total = reply.total_events;
          draw({ total, error: null });
          if (reply.events.length === 0 || told.last >= total) break;
          while (asked.length < AHEAD) {
            const after = (asked.at(-1)?.after ?? told.last - PAGE) + PAGE;
            if (asked.length > 0 && after >= total) break;
            const reply = read(after);
            // One that fails is told of in its turn.
            reply.catch(() => undefined);
            asked.push({ after, reply });
          }
        }
      } catch (failure) {
        if (!stop.signal.aborted) draw({ error: shown(failure), link: "lost" });
        return;
      }
      isRead = true;
      draw({ isRead });
      const listener = {
        message: (event: string, data: string) => {
          if (event === "end") return;
          told.take([parse(data) as unknown as EventView]);
          draw({ total: told.last });
        },
        link: (link: Link, why?: ApiError) => draw({ link, error: link === "lost" && why && !why.passes ? why : null }),
      };
      const options = { params: { brief: true }, last: "end", after: String(told.last) };
      await run(`/api/executions/${encodeURIComponent(id)}/stream`, listener, options, stop.signal);
    })();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, tries]);

  return { ...state, story: story.current, retry: () => setTries((count) => count + 1) };
}

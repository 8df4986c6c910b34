// Events in full, one by one: the log that is followed leaves out what is large.

import { queryOptions } from "@tanstack/react-query";

import { ApiError, ask } from "../../api/client";
import { field, text, type Json } from "../../api/json";
import type { EventsReply, EventView } from "../../api/types";

/** One event, whole. It never changes. */
export function wholeEvent(id: string, seq: number | null) {
  return queryOptions({
    queryKey: ["event", id, seq],
    enabled: seq !== null && seq > 0,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<EventView> => {
      const params = { after: (seq ?? 1) - 1, limit: 1 };
      const reply = await ask<EventsReply>(`/api/executions/${encodeURIComponent(id)}/events`, { params, signal });
      const found = reply.events[0];
      if (!found || found.seq !== seq) throw new ApiError(404, "event_not_found", `The log has no event ${seq}.`);
      return found;
    },
  });
}

/** Where a large result is kept. */
export interface Kept {
  reference: string;
  bytes: number;
}

/** Where the whole result of an event is, if it is not in the event. */
export function keptOf(id: string, event: EventView): Kept | null {
  const reference = field(event.result, "reference");
  const digest = text(field(reference, "digest"));
  const bytes = Number(text(field(reference, "bytes")));
  if (digest === undefined || !Number.isFinite(bytes)) return null;
  return { reference: `noetl://execution/${id}/result/${event.node_name ?? "step"}/${digest}-${bytes}`, bytes };
}

/** A large result, whole. */
export function wholeResult(kept: Kept) {
  return queryOptions({
    queryKey: ["result", kept.reference],
    staleTime: Infinity,
    // One at a time is enough to hold.
    gcTime: 30_000,
    queryFn: ({ signal }) => ask<Json>("/api/result/resolve", { params: { ref: kept.reference }, signal, patience: 120_000 }),
  });
}

/** A number of bytes as people say it. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

// Which executions a list shows. It is read from the address and written there.

import type { Params } from "../../api/client";
import { STATUSES, type Status } from "../../api/types";

/** Executions fetched at a time; the server gives no more. */
export const PAGE = 100;

export interface Filter {
  status: Status | null;
  path: string;
  text: string;
  /** One of `SPANS`, or nothing for all of time. */
  since: string;
  /** Times given by hand, in local time, as an input writes them. */
  from: string;
  to: string;
}

/** How far back a list may reach, by the name in the address. */
export const SPANS: Record<string, { seconds: number; name: string }> = {
  "15m": { seconds: 900, name: "Last 15 minutes" },
  "1h": { seconds: 3600, name: "Last hour" },
  "24h": { seconds: 86_400, name: "Last day" },
  "7d": { seconds: 604_800, name: "Last week" },
  "30d": { seconds: 2_592_000, name: "Last 30 days" },
};

export function filterOf(query: URLSearchParams): Filter {
  const status = (query.get("status") ?? "").toUpperCase();
  const since = query.get("since") ?? "";
  return {
    status: STATUSES.find((known) => known === status) ?? null,
    path: query.get("path") ?? "",
    text: query.get("text") ?? "",
    since: Object.hasOwn(SPANS, since) ? since : "",
    from: query.get("from") ?? "",
    to: query.get("to") ?? "",
  };
}

/** Whether it leaves anything out. */
export function isNarrow(filter: Filter): boolean {
  return filter.status !== null || [filter.path, filter.text, filter.since, filter.from, filter.to].some((said) => said !== "");
}

/** What to ask the server for. A span reaches back from `now`. */
export function paramsOf(filter: Filter, now: number): Params {
  const span = SPANS[filter.since];
  return {
    status: filter.status,
    path: filter.path.trim(),
    text: filter.text.trim(),
    started_after: instant(filter.from) ?? (span ? new Date(now - span.seconds * 1000).toISOString() : null),
    started_before: instant(filter.to),
  };
}

function instant(said: string): string | null {
  const at = new Date(said);
  return said === "" || Number.isNaN(at.getTime()) ? null : at.toISOString();
}

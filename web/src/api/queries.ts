// What pages ask for, by name. A query is asked again when its page comes back into view, and after a
// change that its key begins with.

import { QueryClient, type UseQueryOptions } from "@tanstack/react-query";

import { ask, send, shown, type Params } from "./client";
import type { Json } from "./json";
import type { Activity, CatalogEntry, DashboardStats, Execution, ExecutionDetail, LogReply, Why } from "./types";

/** How often what fails by itself is tried again before it is shown. */
const TRIES = 2;

/** The client that all pages share. */
export function queryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        refetchOnWindowFocus: true,
        retry: (count, failure) => count < TRIES && shown(failure).passes,
        retryDelay: (count) => Math.min(500 * 2 ** count, 5_000),
      },
      mutations: { retry: false },
    },
  });
}

type Query<T> = UseQueryOptions<T, Error, T, readonly unknown[]>;

/** A question with its name. */
export function query<T>(key: readonly unknown[], asked: (signal: AbortSignal) => Promise<T>): Query<T> {
  return { queryKey: key, queryFn: ({ signal }) => asked(signal) };
}

const encoded = encodeURIComponent;

export const queries = {
  executions: (params: Params) =>
    query(["executions", params], (signal) => ask<Execution[]>("/api/executions", { params, signal })),

  execution: (id: string) =>
    query(["execution", id], (signal) =>
      ask<ExecutionDetail>(`/api/executions/${encoded(id)}`, { params: { page: 1, page_size: 1 }, signal }),
    ),

  why: (id: string) => query(["why", id], (signal) => ask<Why>(`/api/executions/${encoded(id)}/why`, { signal })),

  logs: (id: string, command: string | undefined) =>
    query(["logs", id, command], (signal) =>
      ask<LogReply>(`/api/executions/${encoded(id)}/logs`, { params: { command, limit: 5000 }, signal }),
    ),

  stats: () => query(["stats"], (signal) => ask<DashboardStats>("/api/dashboard/stats", { signal })),

  activity: (seconds: number, stretches: number) =>
    query(["activity", seconds, stretches], (signal) =>
      ask<Activity>("/api/dashboard/activity", { params: { seconds, stretches }, signal }),
    ),

  catalog: (kind?: string) =>
    query(["catalog", kind], async (signal) => {
      const body: Json = kind === undefined ? {} : { resource_type: kind };
      return (await send<{ entries: CatalogEntry[] }>("/api/catalog/list", body, { signal })).entries;
    }),

  document: (which: { catalog_id: string } | { path: string }) =>
    query(["document", which], (signal) => send<CatalogEntry>("/api/catalog/resource", { ...which }, { signal })),
};

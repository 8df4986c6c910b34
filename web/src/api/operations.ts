// What pages ask about the server and what works for it.

import { ask, send, type Call } from "./client";
import type { Json } from "./json";
import { query } from "./queries";
import type { EventView } from "./types";

export interface Health {
  status: string;
  database: string;
  nats: string;
  uptime_seconds: number;
  version: string;
}

export interface Runtime {
  runtime_id: Json;
  name: string;
  kind: string;
  uri: string | null;
  status: string;
  labels: Json;
  capabilities: Json;
  capacity: number | null;
  runtime: Json;
  heartbeat: string;
  created_at: string;
}

export interface Load {
  workers: { worker: string; held: number; oldest: string }[];
  complete: boolean;
}

export interface Approval {
  execution_id: string;
  path: string;
  step: string;
  item: number | null;
  command_id: string;
  token: string;
  message: string | null;
  data: Json;
  since: string;
  until: string;
}

export interface Approvals {
  approvals: Approval[];
  next_after: string | null;
}

export interface Subscription {
  subscription_id: string;
  path: string;
  catalog_id: string;
  state: string;
  last_event_type: string;
  updated_at: string | null;
}

export interface SubscriptionEvents {
  events: EventView[];
  next_after: number;
  has_more: boolean;
}

/** What a schedule does not have is left out. */
export interface Schedule {
  schedule_id: string;
  name?: string;
  document?: string;
  playbook: string;
  cron?: string;
  timezone?: string;
  interval_seconds?: number;
  at?: string;
  missed: string;
  overlap: string;
  enabled: boolean;
  next_run_at?: string;
  last_run_at?: string;
  last_status?: string;
}

/** A credential, without what is secret: that is never asked for. */
/** Lets a role act below a prefix of paths, or playbooks below it use a credential. */
export interface Grant {
  id: string;
  role?: string;
  subject?: string;
  credential?: string;
  prefix: string;
  created_at: string;
}

export interface Credential {
  id: string;
  name: string;
  type: string;
  description: string | null;
  tags: string[] | null;
  created_at: string;
  updated_at: string;
}

export interface Pool {
  pool_max: number;
  pool_size: number;
  pool_available: number;
  requests_waiting: number;
}

export interface Machine {
  system: { cpu_percent: number; memory_percent: number };
  process: { memory_rss_mb: number; cpu_percent: number };
}

const encoded = encodeURIComponent;

export const operations = {
  health: () => query(["health", "whole"], (signal) => ask<Health>("/api/health", { signal })),
  machine: () => query(["machine"], (signal) => ask<Machine>("/api/status", { signal })),
  pool: () => query(["pool"], (signal) => ask<Pool>("/api/pool/status", { signal })),

  workers: () => query(["workers"], (signal) => ask<Runtime[]>("/api/worker/pools", { signal })),
  load: () => query(["load"], (signal) => ask<Load>("/api/worker/load", { signal })),

  approvals: () => query(["approvals"], (signal) => ask<Approvals>("/api/approvals", { params: { limit: 100 }, signal })),

  subscriptions: () =>
    query(["subscriptions"], async (signal) => {
      return (await ask<{ subscriptions: Subscription[] }>("/api/subscriptions", { signal })).subscriptions;
    }),

  schedules: () =>
    query(["schedules"], async (signal) => (await ask<{ schedules: Schedule[] }>("/api/schedules", { signal })).schedules),

  grants: () => query(["grants"], async (signal) => (await ask<{ grants: Grant[] }>("/api/grants", { signal })).grants),
  credentials: () =>
    query(["credentials"], async (signal) => (await ask<{ items: Credential[] }>("/api/credentials", { signal })).items),
};

/** A stretch of a subscription's log. */
export function subscriptionEvents(id: string, after: number, call: Call): Promise<SubscriptionEvents> {
  return ask(`/api/subscriptions/${encoded(id)}/events`, { ...call, params: { after, limit: 500 } });
}

/** Answers a step that waits. */
export function answer(approval: Approval, data: Json): Promise<Json> {
  const path = `/api/executions/${encoded(approval.execution_id)}/answers/${encoded(approval.command_id)}`;
  return send(path, { token: approval.token, data });
}

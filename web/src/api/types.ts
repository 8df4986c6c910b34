// What the server answers, as far as the pages read it. Every id is text.

import type { Json } from "./json";

export type Status = "RUNNING" | "COMPLETED" | "FAILED" | "CANCELLED";
export const STATUSES: readonly Status[] = ["RUNNING", "COMPLETED", "FAILED", "CANCELLED"];

export interface Execution {
  execution_id: string;
  catalog_id: string;
  path: string | null;
  version: number;
  status: Status;
  started_at: string;
  completed_at: string | null;
  duration_seconds: number | null;
  progress: number;
  event_count: number;
  parent_execution_id: string | null;
  error: string | null;
}

export interface ExecutionDetail extends Execution {
  workload: Json;
  result: Json;
}

/** One event of a log. */
export interface EventView {
  seq: number;
  event_id: string;
  event_type: string | null;
  node_name: string | null;
  node_type: string | null;
  status: string | null;
  /** When it happened, as its producer reported it. */
  created_at: string;
  /** When the server wrote it. */
  timestamp: string;
  worker_id: string | null;
  duration?: number | null;
  context?: Json;
  result?: Json;
  meta?: Json;
  error?: string | null;
}

export interface EventsReply {
  events: EventView[];
  next_after: number;
  total_events: number;
}

export interface Wait {
  kind: string;
  step: string;
  command_id: string | null;
  item: number | null;
  since: string;
  until: string | null;
  what: string;
  would_move_it: string;
  pool: string | null;
  workers: number | null;
  worker: string | null;
  child_execution_id: string | null;
  child_status: string | null;
}

export interface Why {
  status: Status;
  summary: string;
  waits: Wait[];
  more: number;
  ended: { what: string; step: string | null; kind: string | null; message: string | null; seq: number | null } | null;
}

export interface LogLine {
  n: number;
  command_id: string;
  at: string;
  stream: "stdout" | "stderr";
  text: string;
}

export interface LogReply {
  lines: LogLine[];
  next_after: number;
  gaps: { command_id: string; after: number; lines: number; bytes: number }[];
}

export interface DashboardStats {
  stats: {
    total_executions: number;
    successful_executions: number;
    failed_executions: number;
    cancelled_executions: number;
    running_executions: number;
    total_playbooks: number;
    total_workers: number;
  };
}

/** Executions that started in one stretch of time, by how they stand. */
export interface Activity {
  from: string;
  stretch_seconds: number;
  stretches: { running: number; completed: number; failed: number; cancelled: number }[];
}

/** What is new in a list of executions. */
export interface ListChange {
  changed: Execution[];
  gone: string[];
}

export interface CatalogEntry {
  catalog_id: string;
  path: string;
  kind: string;
  version: number;
  content: string | null;
  layout: Json;
  payload: Json;
  meta: Json;
  created_at: string;
  deleted_at?: string | null;
}

export interface ForkReply {
  execution_id: string;
  status: string;
  forked_from: { execution_id: string; event_id: string | null; seq: number };
}

export interface Diagnostic {
  severity: "error" | "warning";
  code: string;
  line: number;
  column: number;
  path: string;
  message: string;
  help: string | null;
}

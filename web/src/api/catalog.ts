// What pages ask about documents.

import { ask, send } from "./client";
import type { Json } from "./json";
import { query } from "./queries";
import type { CatalogEntry, Diagnostic, Execution } from "./types";

export interface CheckReply {
  valid: boolean;
  path: string | null;
  kind: string | null;
  diagnostics: Diagnostic[];
}

export interface RegisterReply {
  message: string;
  path: string;
  version: number;
  catalog_id: string;
  kind: string;
  warnings: Diagnostic[];
}

export interface Version {
  catalog_id: string;
  version: number;
  kind: string;
  created_at: string;
  deleted_at: string | null;
}

/** One field of a run dialog. */
export interface FormField {
  name: string;
  kind: string;
  default: Json;
  description: string | null;
  secret: boolean;
  credential_glob: string | null;
  options: Json[] | null;
  children: FormField[] | null;
}

export interface Form {
  path: string;
  version: number;
  title: string | null;
  description_markdown: string | null;
  fields: FormField[];
}

/** Executions on one page of a document's history. */
export const RUNS = 50;

export const catalog = {
  versions: (path: string) =>
    query(["versions", path], async (signal) => {
      const said = await ask<{ versions: Version[] }>("/api/catalog/versions", { params: { path }, signal });
      return said.versions;
    }),

  document: (path: string, version: string | null) =>
    query(["document", path, version], (signal) =>
      send<CatalogEntry>("/api/catalog/resource", version === null ? { path } : { path, version }, { signal }),
    ),

  byId: (catalog_id: string) =>
    query(["document", catalog_id], (signal) => send<CatalogEntry>("/api/catalog/resource", { catalog_id }, { signal })),

  form: (path: string, version: number) =>
    query(["form", path, version], (signal) => {
      const address = path.split("/").map(encodeURIComponent).join("/");
      return ask<Form>(`/api/catalog/${address}/ui_schema`, { params: { version }, signal });
    }),

  runs: (catalog_id: string, page: number) =>
    query(["executions", "of", catalog_id, page], (signal) =>
      ask<Execution[]>("/api/executions", { params: { catalog_id, limit: RUNS, offset: page * RUNS }, signal }),
    ),
};

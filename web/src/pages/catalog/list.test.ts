import { expect, it } from "vitest";

import type { CatalogEntry } from "../../api/types";
import { documents, found } from "./list";

const entry = (path: string, version: number, more: Partial<CatalogEntry> = {}): CatalogEntry => ({
  catalog_id: `${version}`, path, version, kind: "playbook", content: "", layout: null, payload: null, meta: null,
  created_at: "2026-01-01T00:00:00Z", ...more,
});

it("a document is shown once, by its highest version", () => {
  const all = documents([entry("b", 1), entry("a", 2), entry("a", 10), entry("a", 1)]);
  expect(all.map((one) => [one.newest.path, one.newest.version, one.versions])).toEqual([["a", 10, 3], ["b", 1, 1]]);
});

it("every word has to be somewhere, and the kind has to fit", () => {
  const all = documents([
    entry("orders/new", 1, { payload: { metadata: { description: "Takes an Order" } } }),
    entry("orders/old", 1, { kind: "subscription", content: "spec: {source: nats}" }),
  ]);
  const paths = (text: string, kind = "") => found(all, text, kind).map((one) => one.newest.path);
  expect(paths("")).toHaveLength(2);
  expect(paths("ORDERS takes")).toEqual(["orders/new"]);
  expect(paths("nats")).toEqual(["orders/old"]);
  expect(paths("orders", "subscription")).toEqual(["orders/old"]);
  expect(paths("orders absent")).toEqual([]);
});

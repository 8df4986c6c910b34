// The catalog as a list of documents: the server names every version of each.

import { field, text as asText } from "../../api/json";
import type { CatalogEntry } from "../../api/types";

export interface Document {
  newest: CatalogEntry;
  versions: number;
}

/** One per path, by path, with its highest version. */
export function documents(entries: CatalogEntry[]): Document[] {
  const byPath = new Map<string, Document>();
  for (const entry of entries) {
    const known = byPath.get(entry.path);
    if (known === undefined) byPath.set(entry.path, { newest: entry, versions: 1 });
    else {
      known.versions += 1;
      if (entry.version > known.newest.version) known.newest = entry;
    }
  }
  return [...byPath.values()].sort((a, b) => (a.newest.path < b.newest.path ? -1 : 1));
}

/** Those with every word of a text in their path, name, description or content, and of a kind if one is given. */
export function found(all: Document[], text: string, kind: string): Document[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter(({ newest }) => {
    if (kind !== "" && newest.kind !== kind) return false;
    if (words.length === 0) return true;
    const metadata = field(newest.payload, "metadata");
    const said = [newest.path, asText(field(metadata, "name")), asText(field(metadata, "description")), newest.content];
    const searched = said.join("\n").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

// What `/metrics` said lately. It is kept while the page is open, so that switching pages and back does not
// empty the lines.

import { useQuery } from "@tanstack/react-query";

import { askText } from "../../api/client";
import { samples, type Reading } from "./prometheus";

/** How often it is read, and how many readings are kept: five minutes. */
const EVERY_MS = 2_000;
const KEPT = 150;

let kept: Reading[] = [];

export function useReadings() {
  return useQuery({
    queryKey: ["metrics"],
    queryFn: async ({ signal }) => {
      const text = await askText("/metrics", { signal });
      kept = [...kept, { at: Date.now(), samples: samples(text) }].slice(-KEPT);
      return kept;
    },
    refetchInterval: EVERY_MS,
    staleTime: EVERY_MS / 2,
    refetchOnWindowFocus: false,
  });
}

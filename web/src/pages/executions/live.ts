// The list as it is now: the newest page from a stream, older ones when asked for.

import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";

import { ApiError, ask, type Params } from "../../api/client";
import { parse } from "../../api/json";
import { follow, type Link } from "../../api/sse";
import type { Execution, ListChange } from "../../api/types";
import { PAGE } from "./filter";
import { merged, newestFirst } from "./merge";

export interface Live {
  rows: Execution[] | undefined;
  error: unknown;
  link: Link;
  why: ApiError | undefined;
  hasMore: boolean;
  isFetchingMore: boolean;
  more(): void;
  retry(): void;
}

export function useLive(params: Params): Live {
  const client = useQueryClient();
  const key = JSON.stringify(params);
  const [link, setLink] = useState<{ link: Link; why?: ApiError | undefined }>({ link: "connecting" });
  const [newest, setNewest] = useState<{ key: string; rows: Execution[] }>();
  const [tries, setTries] = useState(0);
  const pages = useInfiniteQuery({
    queryKey: ["executions", "pages", key],
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      ask<Execution[]>("/api/executions", { params: { ...params, limit: PAGE, offset: pageParam }, signal }),
    getNextPageParam: (last, all) => (last.length < PAGE ? undefined : all.length * PAGE),
    // The stream says what is new.
    refetchOnWindowFocus: false,
    staleTime: 60_000,
  });

  useEffect(() => {
    // A stream begins with its whole list, so a reconnected stream replaces the list.
    let fresh = true;
    let later: ReturnType<typeof setTimeout> | undefined;
    const stop = follow(
      "/api/executions/stream",
      {
        message: (_event, data) => {
          const change = parse(data) as unknown as ListChange;
          const first = fresh;
          fresh = false;
          setNewest((before) => ({ key, rows: merged(first || before?.key !== key ? [] : before.rows, change) }));
          // Counts follow, not more than once a second however much happens.
          later ??= setTimeout(() => {
            later = undefined;
            void client.invalidateQueries({ queryKey: ["stats"] });
            void client.invalidateQueries({ queryKey: ["activity"] });
          }, 1000);
        },
        link: (now, why) => {
          if (now === "connecting") fresh = true;
          setLink({ link: now, why });
        },
      },
      { params: { ...params, limit: PAGE } },
    );
    return () => {
      stop();
      clearTimeout(later);
    };
    // The key holds every parameter.
  }, [key, client, tries]);

  const rows = useMemo(() => {
    const streamed = newest?.key === key ? newest.rows : undefined;
    const fetched = pages.data?.pages.flat();
    if (!streamed) return fetched;
    if (!fetched || streamed.length < PAGE) return streamed;
    // What is older than the streamed page comes from the fetched ones.
    const oldest = streamed[streamed.length - 1];
    const known = new Set(streamed.map((row) => row.execution_id));
    const older = fetched.filter((row) => !known.has(row.execution_id) && oldest && newestFirst(oldest, row) < 0);
    return [...streamed, ...older];
  }, [newest, pages.data, key]);

  return {
    rows,
    error: rows ? null : pages.error,
    link: link.link,
    why: link.why,
    hasMore: pages.hasNextPage,
    isFetchingMore: pages.isFetchingNextPage,
    more: () => void pages.fetchNextPage(),
    retry: () => {
      void pages.refetch();
      setTries((count) => count + 1);
    },
  };
}

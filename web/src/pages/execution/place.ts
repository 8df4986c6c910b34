// Where in the log the page stands. The slider moves faster than an address may change, so that the
// address follows when it rests.

import { useCallback, useEffect, useRef, useState } from "react";

import { useSearch } from "../../shell/router";

/** How long the slider rests before the address says where it is. */
const REST_MS = 200;

/** A place in the log, as an address has it; nothing for nonsense. */
export function placeOf(said: string | null): number | null {
  return said !== null && /^\d{1,15}$/.test(said) ? Number(said) : null;
}

/** The place, nothing for the end of the log, and how to go to another. */
export function usePlace(): [number | null, (next: number | null) => void] {
  const [query, change] = useSearch();
  const written = placeOf(query.get("at"));
  const [at, setAt] = useState(written);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const go = useCallback(
    (next: number | null) => {
      setAt(next);
      clearTimeout(timer.current);
      const page = location.pathname;
      timer.current = setTimeout(() => {
        timer.current = undefined;
        // The address may be another page's before this one is gone.
        if (location.pathname === page) change({ at: next === null ? null : String(next) });
      }, REST_MS);
    },
    [change],
  );
  // The user went back or followed a link.
  useEffect(() => {
    if (timer.current === undefined) setAt(written);
  }, [written]);
  // What was not written yet is of a page that is gone.
  useEffect(() => () => clearTimeout(timer.current), []);
  return [at, go];
}

// Which page an address names. The whole address is the state of a page: filters, the moment of a log
// and the open step are in it, so that a link shows what its sender saw.

import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useState,
  type AnchorHTMLAttributes,
  type MouseEvent,
  type ReactNode,
} from "react";

interface Place {
  path: string;
  search: string;
}

interface Router extends Place {
  go(to: string, how?: { replace?: boolean }): void;
}

const RouterContext = createContext<Router | null>(null);

const here = (): Place => ({ path: location.pathname, search: location.search });

export function RouterProvider({ children }: { children: ReactNode }) {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => setPlace(here());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const go = useCallback((to: string, how?: { replace?: boolean }) => {
    const before = location.pathname;
    if (how?.replace) history.replaceState(null, "", to);
    else history.pushState(null, "", to);
    setPlace(here());
    if (location.pathname !== before) scrollTo(0, 0);
  }, []);
  const router = useMemo(() => ({ ...place, go }), [place, go]);
  return <RouterContext.Provider value={router}>{children}</RouterContext.Provider>;
}

export function useRouter(): Router {
  const router = useContext(RouterContext);
  if (router === null) throw new Error("a page stands outside the router");
  return router;
}

/** The parameters of an address that has the shape of `pattern`, as `/executions/:id`; else nothing. */
export function matched(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/").filter(Boolean);
  const given = path.split("/").filter(Boolean);
  const found: Record<string, string> = {};
  for (const [place, part] of wanted.entries()) {
    if (part.startsWith("*")) {
      const rest = given.slice(place);
      if (rest.length === 0) return null;
      found[part.slice(1)] = rest.map(decoded).join("/");
      return found;
    }
    const said = given[place];
    if (said === undefined) return null;
    if (part.startsWith(":")) found[part.slice(1)] = decoded(said);
    else if (part !== said) return null;
  }
  return given.length === wanted.length ? found : null;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The search part of an address with some parameters changed; null takes one out. */
export function changed(search: string, changes: Record<string, string | null>): string {
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** The parameters of the address, and how to change some. A change replaces the address unless it is a `step`. */
export function useSearch(): [URLSearchParams, (changes: Record<string, string | null>, step?: boolean) => void] {
  const { search, go } = useRouter();
  const query = useMemo(() => new URLSearchParams(search), [search]);
  const change = useCallback(
    (changes: Record<string, string | null>, step = false) =>
      // The address of this moment, not of the last drawing: two changes may come in a row.
      go(location.pathname + changed(location.search, changes), { replace: !step }),
    [go],
  );
  return [query, change];
}

/** A link within the page. Other buttons and keys do what they do with any link. */
export function Link({ to, ...rest }: { to: string } & Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href">) {
  const { go } = useRouter();
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    rest.onClick?.(event);
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    go(to);
  };
  return <a {...rest} href={to} onClick={follow} />;
}

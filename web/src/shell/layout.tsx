// What surrounds every page: where to go, whether the server answers, light or dark.

import { useQuery } from "@tanstack/react-query";
import { useSyncExternalStore, type ReactNode } from "react";

import { ask } from "../api/client";
import { onSession, signOut, token } from "../api/session";
import { Icon } from "../ui/icon";
import { turnZone, useZone } from "../ui/zone";
import { Link, useRouter } from "./router";
import { useTheme } from "./theme";

const PLACES: { to: string; name: string; also?: string }[] = [
  { to: "/executions", name: "Executions" },
  { to: "/catalog", name: "Catalog", also: "/editor" },
  { to: "/operations", name: "Operations" },
];

export function Layout({ children }: { children: ReactNode }) {
  const { path, go } = useRouter();
  const [theme, turn] = useTheme();
  const zone = useZone();
  const held = useSyncExternalStore(onSession, token);
  return (
    <>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="top">
        <Link to="/executions" className="brand">
          <img src="/icon.svg" alt="" width="24" height="24" />
          <span>NoETL</span>
        </Link>
        <nav aria-label="Pages">
          {PLACES.map(({ to, name, also }) => (
            <Link key={to} to={to} aria-current={path === to || path === also || path.startsWith(`${to}/`) ? "page" : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <Health />
        {held !== null && <Person leave={() => (signOut(), go("/sign-in"))} />}
        <button
          type="button"
          className="quiet small"
          onClick={turnZone}
          aria-label={zone === "local" ? "Local time; tell times in UTC" : "UTC; tell times in local time"}
          title={zone === "local" ? "Local time; tell times in UTC" : "UTC; tell times in local time"}
        >
          {zone === "local" ? "Local time" : "UTC"}
        </button>
        <button type="button" className="quiet" onClick={turn} aria-label={`Turn to ${theme === "dark" ? "light" : "dark"}`}>
          <Icon name={theme === "dark" ? "sun" : "moon"} />
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

/** Who is signed in, and how they leave. */
function Person({ leave }: { leave(): void }) {
  const { data } = useQuery({
    queryKey: ["whoami"],
    queryFn: ({ signal }) => ask<{ name: string; tenant: string; roles: string[] }>("/api/whoami", { signal }),
    staleTime: Infinity,
  });
  return (
    <>
      {data && (
        <span className="person" title={`${data.roles.join(", ")} of tenant ${data.tenant}`}>
          {data.name}
        </span>
      )}
      <button type="button" className="quiet" onClick={leave}>
        Sign out
      </button>
    </>
  );
}

/** Whether the server answers. Asked often while it does not, so that a restart is soon seen. */
function Health() {
  const { data, isError } = useQuery({
    queryKey: ["health"],
    queryFn: ({ signal }) => ask<{ status: string; version: string; database: string }>("/api/health", { signal }),
    retry: false,
    refetchInterval: (query) => (query.state.status === "error" ? 2_000 : 15_000),
  });
  if (isError) {
    return (
      <span className="health bad" role="status">
        The server does not answer; trying again
      </span>
    );
  }
  return (
    <span className="health" role="status" title={data ? `version ${data.version}, database ${data.database}` : undefined}>
      {data ? (data.status === "ok" ? "connected" : data.status) : "…"}
    </span>
  );
}

// Parts of a page, each with an address of its own.

import { Link } from "../shell/router";

export interface Part {
  to: string;
  name: string;
  /** How many are there, if that matters. */
  count?: number | undefined;
}

export function Parts({ label, parts, current }: { label: string; parts: Part[]; current: string }) {
  return (
    <nav className="parts" aria-label={label}>
      {parts.map(({ to, name, count }) => (
        <Link key={name} to={to} aria-current={name === current ? "page" : undefined}>
          {name}
          {count ? <span className="count">{count}</span> : null}
        </Link>
      ))}
    </nav>
  );
}

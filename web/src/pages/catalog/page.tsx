// Every document that was registered, newest version of each.

import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useMemo } from "react";

import { field, text } from "../../api/json";
import { queries } from "../../api/queries";
import type { CatalogEntry } from "../../api/types";
import { Link, useSearch } from "../../shell/router";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Time } from "../../ui/time";
import { entryAddress } from "./address";
import { documents, found } from "./list";
import "./catalog.css";

/** Rows drawn at first, and added each time: a table of thousands of rows is slow and too long to read. */
const SHOWN = 200;

export default function CatalogPage() {
  const [query, change] = useSearch();
  const { data, error, refetch } = useQuery(queries.catalog());
  const sought = query.get("text") ?? "";
  const kind = query.get("kind") ?? "";
  const shown = Math.max(SHOWN, Number(query.get("shown")) || 0);
  const wanted = useDeferredValue(sought);
  const all = useMemo(() => documents(data ?? []), [data]);
  const kinds = useMemo(() => [...new Set(all.map((one) => one.newest.kind))].sort(), [all]);
  const rows = useMemo(() => found(all, wanted, kind), [all, wanted, kind]);
  return (
    <div className="stack">
      <div className="line ends">
        <h1>Catalog</h1>
        <span className="push" />
        <label>
          Find
          <input type="search" value={sought} onChange={(event) => change({ text: event.target.value, shown: null })} placeholder="path, name or text" />
        </label>
        <label>
          Kind
          <select value={kind} onChange={(event) => change({ kind: event.target.value, shown: null })}>
            <option value="">all</option>
            {kinds.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <Link to="/editor" className="button primary">
          New document
        </Link>
      </div>
      {error && <Failure of="The catalog cannot be shown" error={error} retry={refetch} />}
      {!data && !error && <Loading of="the catalog" />}
      {data && all.length === 0 && <First />}
      {data && all.length > 0 && rows.length === 0 && (
        <Empty title="No document is like that">
          <button type="button" onClick={() => change({ text: null, kind: null })}>
            Show all {all.length}
          </button>
        </Empty>
      )}
      {rows.length > 0 && <Table rows={rows.slice(0, shown)} />}
      {rows.length > shown && (
        <p>
          {shown} of {rows.length} shown.{" "}
          <button type="button" onClick={() => change({ shown: String(shown + SHOWN) })}>
            Show more
          </button>
        </p>
      )}
    </div>
  );
}

function Table({ rows }: { rows: { newest: CatalogEntry; versions: number }[] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Documents">
      <table>
        <thead>
          <tr>
            <th scope="col">Path</th>
            <th scope="col">Kind</th>
            <th scope="col">Version</th>
            <th scope="col">Registered</th>
            <th scope="col">
              <span className="visually-hidden">Do</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ newest, versions }) => (
            <tr key={newest.path}>
              <td className="breaks">
                <Link to={entryAddress(newest.path)} className="strong">
                  {newest.path}
                </Link>
                <About entry={newest} />
              </td>
              <td>{newest.kind}</td>
              <td>
                {newest.version}
                {versions > 1 && <span className="faint small"> of {versions}</span>}
              </td>
              <td>
                <Time at={newest.created_at} relative />
              </td>
              <td>
                {newest.kind === "playbook" && (
                  <Link to={entryAddress(newest.path, { run: "yes" })} className="button" aria-label={`Run ${newest.path}`}>
                    Run
                  </Link>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the document says of itself. */
function About({ entry }: { entry: CatalogEntry }) {
  const description = text(field(entry.payload, "metadata", "description"));
  return description === undefined ? null : <div className="small faint clip">{description}</div>;
}

/** Shown on a new server without documents. */
function First() {
  return (
    <Empty title="Nothing is registered yet">
      <p>A playbook says which steps there are and what each of them runs. It is registered once and run as often as you like.</p>
      <p>
        <Link to="/editor" className="button primary">
          Write the first one here
        </Link>
      </p>
      <p>
        Or register a file: <code>noetl register playbook -f hello.yaml</code>
      </p>
    </Empty>
  );
}

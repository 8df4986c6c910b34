// What came of a version of a document.

import { useQuery } from "@tanstack/react-query";

import { catalog, RUNS } from "../../api/catalog";
import type { CatalogEntry } from "../../api/types";
import { Link, useSearch } from "../../shell/router";
import { Badge } from "../../ui/badge";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { duration, Time } from "../../ui/time";

export function Runs({ entry }: { entry: CatalogEntry }) {
  const [query, change] = useSearch();
  const page = Math.max(0, Math.floor(Number(query.get("page")) || 0));
  const { data, error, refetch } = useQuery({ ...catalog.runs(entry.catalog_id, page), refetchInterval: 5000 });
  if (error) return <Failure of="The runs cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the runs" />;
  const everyVersion = <Link to={`/executions?path=${encodeURIComponent(entry.path)}`}>Runs of every version</Link>;
  if (data.length === 0) {
    return (
      <Empty title={page === 0 ? `Version ${entry.version} has not run yet` : "There are no more"}>
        <p>
          <button type="button" onClick={() => change({ run: "yes" })}>
            Run it
          </button>
        </p>
        <p>{everyVersion}</p>
      </Empty>
    );
  }
  return (
    <div className="stack">
      <div className="scroll" tabIndex={0} role="region" aria-label="Runs">
        <table>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Execution</th>
              <th scope="col">Started</th>
              <th scope="col">Took</th>
              <th scope="col">Error</th>
            </tr>
          </thead>
          <tbody>
            {data.map((one) => (
              <tr key={one.execution_id}>
                <td>
                  <Badge status={one.status} />
                </td>
                <td>
                  <Link to={`/executions/${one.execution_id}`}>{one.execution_id}</Link>
                </td>
                <td>
                  <Time at={one.started_at} />
                </td>
                <td>{one.duration_seconds === null ? "" : duration(one.duration_seconds * 1000)}</td>
                <td className="breaks">{one.error}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="line">
        <button type="button" disabled={page === 0} onClick={() => change({ page: page <= 1 ? null : String(page - 1) })}>
          Newer
        </button>
        <button type="button" disabled={data.length < RUNS} onClick={() => change({ page: String(page + 1) })}>
          Older
        </button>
        <span className="push">{everyVersion}</span>
      </div>
    </div>
  );
}

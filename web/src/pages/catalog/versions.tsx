// The versions of a document, and what changed between two of them.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { catalog, type Version } from "../../api/catalog";
import { send } from "../../api/client";
import { Link, useSearch } from "../../shell/router";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Time } from "../../ui/time";
import { editorAddress, entryAddress } from "./address";
import { difference, folded, type Change } from "./diff";

export function Versions({ path, shown }: { path: string; shown: number | null }) {
  const [query, change] = useSearch();
  const client = useQueryClient();
  const [failure, setFailure] = useState<unknown>(null);
  const { data, error, refetch } = useQuery(catalog.versions(path));
  if (error) return shown === null ? null : <Failure of="The versions cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the versions" />;
  const restore = async (version: number) => {
    setFailure(null);
    try {
      await send("/api/catalog/restore", { path, version });
      for (const queryKey of [["catalog"], ["document"], ["versions"]]) void client.invalidateQueries({ queryKey });
    } catch (error) {
      setFailure(error);
    }
  };
  // Without a choice: the newest and the one before it.
  const newer = numbered(data, query.get("newer")) ?? data[0];
  const older = numbered(data, query.get("older")) ?? data[1];
  return (
    <div className="stack">
      {failure !== null && <Failure of="It was not restored" error={failure} />}
      <div className="scroll" tabIndex={0} role="region" aria-label="Versions">
        <table>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">Registered</th>
              <th scope="col">Compare</th>
              <th scope="col">
                <span className="visually-hidden">Do</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map((one) => (
              <tr key={one.version}>
                <td>
                  {one.deleted_at ? (
                    <span className="faint">{one.version} (deleted)</span>
                  ) : (
                    <Link to={entryAddress(path, { version: String(one.version) })} aria-current={one.version === shown ? "true" : undefined}>
                      {one.version}
                    </Link>
                  )}
                </td>
                <td>
                  <Time at={one.created_at} />
                </td>
                <td>
                  <div className="line">
                    {(["older", "newer"] as const).map((side) => (
                      <label className="row" key={side}>
                        <input
                          type="radio"
                          name={side}
                          checked={(side === "older" ? older : newer)?.version === one.version}
                          onChange={() => change({ [side]: String(one.version), tab: "versions" })}
                          aria-label={`Version ${one.version} as the ${side}`}
                        />
                        {side}
                      </label>
                    ))}
                  </div>
                </td>
                <td>
                  {one.deleted_at ? (
                    <button type="button" onClick={() => restore(one.version)} aria-label={`Restore version ${one.version}`}>
                      Restore
                    </button>
                  ) : (
                    <Link to={editorAddress(path, one.version)} aria-label={`Edit from here: version ${one.version}`}>
                      Edit from here
                    </Link>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {older && newer && older.version !== newer.version && <Difference older={older} newer={newer} />}
      {data.length === 1 && <p className="faint">There is one version; register it again changed, and the two can be compared here.</p>}
    </div>
  );
}

function numbered(versions: Version[], wanted: string | null): Version | undefined {
  return wanted === null ? undefined : versions.find((one) => String(one.version) === wanted);
}

function Difference({ older, newer }: { older: Version; newer: Version }) {
  const [whole, setWhole] = useState(false);
  // By their ids: a deleted version is found by nothing else.
  const left = useQuery({ ...catalog.byId(older.catalog_id), staleTime: Infinity });
  const right = useQuery({ ...catalog.byId(newer.catalog_id), staleTime: Infinity });
  const changes = useMemo(
    () => (left.data && right.data ? difference(left.data.content ?? "", right.data.content ?? "") : null),
    [left.data, right.data],
  );
  const error = left.error ?? right.error;
  if (error) return <Failure of="The versions cannot be compared" error={error} retry={() => (left.refetch(), right.refetch())} />;
  if (!changes) return <Loading of="both versions" />;
  const count = (kind: Change["kind"]) => changes.filter((one) => one.kind === kind).length;
  const lines = whole ? changes : folded(changes);
  return (
    <section aria-label={`From version ${older.version} to ${newer.version}`} className="stack">
      <div className="line head">
        <h2>
          From version {older.version} to {newer.version}
        </h2>
        <span>
          {count("new")} lines new, {count("gone")} gone
        </span>
        <label className="row push">
          <input type="checkbox" checked={whole} onChange={(event) => setWhole(event.target.checked)} /> whole documents
        </label>
      </div>
      <div className="diff" tabIndex={0} role="region" aria-label="Changed lines">
        {lines.map((line, place) =>
          typeof line === "number" ? (
            <p key={place} className="left-out">
              {line} unchanged lines
            </p>
          ) : (
            <div key={place} className={`diff-line ${line.kind}`}>
              <span className="number">{line.older}</span>
              <span className="number">{line.newer}</span>
              <span className="sign">{SIGNS[line.kind]}</span>
              <code>{line.text}</code>
            </div>
          ),
        )}
      </div>
    </section>
  );
}

const SIGNS = { same: " ", gone: "−", new: "+" };

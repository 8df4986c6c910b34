// One document: what it says, how it looks, what changed, what came of it.

import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";

import { catalog } from "../../api/catalog";
import { field, text } from "../../api/json";
import type { CatalogEntry } from "../../api/types";
import { Link, useSearch } from "../../shell/router";
import { Copy, Id } from "../../ui/copy";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Parts } from "../../ui/parts";
import { Time } from "../../ui/time";
import { editorAddress, entryAddress } from "./address";
import { Delete } from "./delete";
import { Run } from "./run";
import { Runs } from "./runs";
import { Versions } from "./versions";
import "./catalog.css";

const Preview = lazy(() => import("./preview"));

const TABS = ["Document", "Graph", "Versions", "Runs"];

export default function CatalogEntryPage({ params }: { params: Record<string, string> }) {
  const path = params["path"] ?? "";
  const [query] = useSearch();
  const version = query.get("version");
  const { data, error, refetch } = useQuery(catalog.document(path, version));
  if (error) {
    return (
      <div className="stack">
        <h1>{path}</h1>
        <Failure of={`${path} cannot be shown`} error={error} retry={refetch} />
        <Versions path={path} shown={null} />
      </div>
    );
  }
  if (!data) return <Loading of={path} />;
  return <Shown entry={data} named={version} />;
}

function Shown({ entry, named }: { entry: CatalogEntry; named: string | null }) {
  const [query, change] = useSearch();
  const [deleting, setDeleting] = useState(false);
  const isPlaybook = entry.kind === "playbook";
  const tabs = isPlaybook ? TABS : ["Document", "Versions"];
  const current = tabs.find((tab) => tab.toLowerCase() === query.get("tab")) ?? "Document";
  const description = text(field(entry.payload, "metadata", "description"));
  const at = named === null ? {} : { version: named };
  return (
    <div className="stack">
      <div className="line">
        <h1>{entry.path}</h1>
        <span className="push" />
        {isPlaybook && (
          <button type="button" className="primary" onClick={() => change({ run: "yes" })}>
            Run
          </button>
        )}
        <Link to={editorAddress(entry.path, named === null ? undefined : entry.version)} className="button">
          Edit
        </Link>
        <button type="button" className="danger" onClick={() => setDeleting(true)}>
          Delete
        </button>
      </div>
      {description && <p className="description">{description}</p>}
      <p className="faint">
        {entry.kind}, version {entry.version}
        {named !== null && (
          <>
            {" "}
            (<Link to={entryAddress(entry.path)}>go to the newest</Link>)
          </>
        )}
        , registered <Time at={entry.created_at} />, <Id id={entry.catalog_id} />
      </p>
      <Parts
        label="Parts of the document"
        current={current}
        parts={tabs.map((name) => ({
          name,
          to: entryAddress(entry.path, { ...at, ...(name === "Document" ? {} : { tab: name.toLowerCase() }) }),
        }))}
      />
      {current === "Document" && <Content content={entry.content ?? ""} />}
      {current === "Graph" && (
        <Suspense fallback={<Loading of="the graph" />}>
          <Preview workflow={entry.layout} />
        </Suspense>
      )}
      {current === "Versions" && <Versions path={entry.path} shown={entry.version} />}
      {current === "Runs" && <Runs entry={entry} />}
      {query.get("run") !== null && isPlaybook && <Run entry={entry} close={() => change({ run: null })} />}
      {deleting && <Delete entry={entry} close={() => setDeleting(false)} />}
    </div>
  );
}

function Content({ content }: { content: string }) {
  if (content === "") return <Empty title="It is empty" />;
  return (
    <div className="document">
      <Copy text={content} label="Copy the document" />
      <pre className="code tall" tabIndex={0} role="region" aria-label="The document">
        {content}
      </pre>
    </div>
  );
}

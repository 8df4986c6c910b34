// One execution: its graph, its time, its log, at any moment of it.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useDeferredValue, useEffect, useMemo, useState } from "react";

import { queries } from "../../api/queries";
import type { ExecutionDetail } from "../../api/types";
import { momentAt } from "../../model/moment";
import type { Command } from "../../model/story";
import { Link, useSearch } from "../../shell/router";
import { Badge } from "../../ui/badge";
import { Id } from "../../ui/copy";
import { Loading } from "../../ui/empty";
import { Failure, Guard } from "../../ui/failure";
import { JsonView } from "../../ui/json-view";
import { Tabs } from "../../ui/tabs";
import { duration, Time, useNow } from "../../ui/time";
import { Compare } from "./compare";
import { Context } from "./context";
import { CancelDialog, ForkDialog, type Beginning } from "./dialogs";
import { Events } from "./events";
import "./execution.css";
import { useStory } from "./follow";
import { Graph } from "./graph";
import { Logs } from "./logs";
import { placeOf, usePlace } from "./place";
import { StepPanel } from "./step";
import { Timeline } from "./timeline";
import { Travel } from "./travel";
import { WhyBanner } from "./why";

export default function ExecutionPage({ params }: { params: Record<string, string> }) {
  const id = params["id"] ?? "";
  const detail = useQuery(queries.execution(id));
  if (detail.error && !detail.data) {
    return <Failure of={`Execution ${id} cannot be shown`} error={detail.error} retry={detail.refetch} />;
  }
  if (!detail.data) return <Loading of="the execution" />;
  return <Shown id={id} detail={detail.data} />;
}

function Shown({ id, detail }: { id: string; detail: ExecutionDetail }) {
  const client = useQueryClient();
  const [query, change] = useSearch();
  const following = useStory(id);
  const { story, version } = following;
  const document = useQuery({ ...queries.document({ catalog_id: detail.catalog_id }), staleTime: Infinity });
  const [dialog, setDialog] = useState<{ kind: "cancel" } | { kind: "fork"; from: Beginning } | null>(null);

  const [at, go] = usePlace();
  const other = placeOf(query.get("vs"));
  const seq = Math.min(at ?? story.last, story.last);
  // The slider goes ahead; what is costly to draw follows when there is time.
  const drawn = useDeferredValue(seq);
  const moment = useMemo(() => momentAt(story, drawn), [story, version, drawn]);

  // What the page asked for once is asked again when the log says that it is over.
  const isOver = story.end !== null;
  useEffect(() => {
    void client.invalidateQueries({ queryKey: ["execution", id] });
    void client.invalidateQueries({ queryKey: ["why", id] });
  }, [client, id, isOver]);

  const step = query.get("step");
  const command = story.command(query.get("command") ?? "") ?? null;
  const choose = useCallback((name: string) => change({ step: name, command: null, tab: null }), [change]);
  const chooseCommand = useCallback((one: Command) => change({ step: one.step, command: one.id }), [change]);

  return (
    <div className="stack execution-page">
      <Header detail={detail} following={following} cancel={() => setDialog({ kind: "cancel" })} again={(from) => setDialog({ kind: "fork", from })} />
      <WhyBanner id={id} isOver={isOver} version={isOver ? 0 : story.last} choose={choose} />
      {following.error && <Failure of="The log cannot be read on" error={following.error} retry={following.retry} />}
      {!following.isRead && following.total > 0 && (
        <p className="small faint" role="status">
          Reading the log: {story.last} of {following.total} events
        </p>
      )}
      <Travel
        story={story}
        at={seq}
        isLive={at === null}
        go={go}
        other={other}
        compare={(next) => change({ vs: next === null ? null : String(next) })}
        fork={(next) => setDialog({ kind: "fork", from: { at: next } })}
      />
      <div className={step ? "halves" : ""}>
        <div className="stack">
          {document.error && <Failure of="The playbook cannot be read, so its graph has only what ran" error={document.error} retry={document.refetch} />}
          {other !== null ? (
            <Compare workflow={document.data?.layout} story={story} version={version} moment={moment} other={other} chosen={step} choose={choose} />
          ) : (
            <section className="panel" aria-label="Graph">
              <div className="line head">
                <h2>Steps</h2>
                <Counters counts={moment.counts} />
              </div>
              <Guard of="The graph">
                <Graph workflow={document.data?.layout} story={story} version={version} moment={moment} chosen={step} choose={choose} />
              </Guard>
            </section>
          )}
          <div className="panel">
            <Guard of="The timeline">
              <Timeline story={story} version={version} moment={moment} chosen={command?.id ?? null} choose={chooseCommand} />
            </Guard>
          </div>
        </div>
        {step && (
          <Guard key={step} of="The step">
            <StepPanel
              id={id}
              story={story}
              moment={moment}
              step={step}
              command={command?.step === step ? command : null}
              choose={chooseCommand}
              close={() => change({ step: null, command: null, tab: null })}
              tab={query.get("tab")}
              setTab={(tab) => change({ tab })}
            />
          </Guard>
        )}
      </div>
      <section className="panel" aria-label="More about the execution">
        <Tabs
          label="About the execution"
          tabs={[
            { name: "events", title: "Events" },
            { name: "context", title: "Context" },
            { name: "result", title: "Result" },
            { name: "logs", title: "Logs" },
            { name: "children", title: "Children" },
          ]}
          chosen={query.get("view") ?? "events"}
          choose={(view) => change({ view })}
        >
          {(name) => (
            <Guard key={name} of="This part">
              {name === "events" && <Events id={id} story={story} version={version} at={moment.seq} go={go} />}
              {name === "context" && <Context id={id} moment={moment} workload={detail.workload} story={story} />}
              {name === "result" &&
                (story.end && story.end.seq <= moment.seq ? (
                  <JsonView value={detail.result ?? null} label="the result" />
                ) : (
                  <p className="faint">It was not over at this moment.</p>
                ))}
              {name === "logs" && <Logs id={id} isOpen={!isOver} />}
              {name === "children" && <Children id={id} isOver={isOver} />}
            </Guard>
          )}
        </Tabs>
      </section>
      {dialog?.kind === "cancel" && <CancelDialog id={id} close={() => setDialog(null)} />}
      {dialog?.kind === "fork" && <ForkDialog id={id} from={dialog.from} workload={detail.workload} close={() => setDialog(null)} />}
    </div>
  );
}

interface HeaderProps {
  detail: ExecutionDetail;
  following: ReturnType<typeof useStory>;
  cancel(): void;
  again(from: Beginning): void;
}

function Header({ detail, following: { story, link }, cancel, again }: HeaderProps) {
  const status = story.end ? story.end.state : detail.status;
  const now = useNow(1000, story.end === null);
  const until = story.end?.at ?? (detail.completed_at ? Date.parse(detail.completed_at) : now);
  return (
    <header>
      <div className="line">
        <h1>
          <Link to={`/catalog/${(detail.path ?? "").split("/").map(encodeURIComponent).join("/")}`}>{detail.path}</Link>{" "}
          <span className="faint">v{detail.version}</span>
        </h1>
        <Badge status={status} />
        <span className="push small faint" role="status">
          {link === "open" ? "live" : link === "lost" ? "connection lost, coming again" : link === "over" ? "" : "connecting…"}
        </span>
        {story.end === null && (
          <button type="button" className="danger" onClick={cancel}>
            Cancel
          </button>
        )}
        {story.end?.state === "failed" && (
          <button type="button" className="primary" onClick={() => again("failure")}>
            Retry what failed
          </button>
        )}
        <button type="button" onClick={() => again("beginning")}>
          Run again
        </button>
      </div>
      <p className="line small">
        <Id id={detail.execution_id} />
        <span>
          started <Time at={detail.started_at} />
        </span>
        <span>took {duration(until - Date.parse(detail.started_at))}</span>
        {detail.parent_execution_id && <Link to={`/executions/${detail.parent_execution_id}`}>started by {detail.parent_execution_id}</Link>}
        {story.forkedFrom && (
          <Link to={`/executions/${story.forkedFrom.execution}${story.forkedFrom.seq ? `?at=${story.forkedFrom.seq}` : ""}`}>
            forked from {story.forkedFrom.execution}
          </Link>
        )}
      </p>
    </header>
  );
}

function Counters({ counts }: { counts: ReturnType<typeof momentAt>["counts"] }) {
  const shown = ["running", "waiting", "pending", "completed", "failed", "cancelled"] as const;
  return (
    <ul className="counters" aria-label="Pieces of work at this moment" title="Steps that were reached, and how the pieces of their work stand">
      <li>
        <strong>{counts.steps}</strong> {counts.steps === 1 ? "step" : "steps"} reached
      </li>
      {shown
        .filter((name) => counts[name] > 0)
        .map((name) => (
          <li key={name} className={`is-${name}`}>
            <strong>{counts[name]}</strong> {name}
          </li>
        ))}
    </ul>
  );
}

function Children({ id, isOver }: { id: string; isOver: boolean }) {
  const { data, error, refetch } = useQuery({
    ...queries.executions({ parent_execution_id: id, limit: 100 }),
    refetchInterval: isOver ? false : 3000,
  });
  if (error) return <Failure of="What it started cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="what it started" />;
  if (data.length === 0) return <p className="faint">It started no other execution.</p>;
  return (
    <div className="scroll">
      <table>
        <tbody>
          {data.map((row) => (
            <tr key={row.execution_id}>
              <td>
                <Badge status={row.status} />
              </td>
              <td>
                <Link to={`/executions/${row.execution_id}`}>{row.path}</Link>
              </td>
              <td>
                <Id id={row.execution_id} />
              </td>
              <td>{row.error}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

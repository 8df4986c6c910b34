// One step: what went in, what came out, what went wrong, what it printed.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { field, isObject, text, type Json } from "../../api/json";
import type { Moment } from "../../model/moment";
import { changeAt, type Command, type Story } from "../../model/story";
import { Link } from "../../shell/router";
import { Badge } from "../../ui/badge";
import { Copy, Id } from "../../ui/copy";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Icon } from "../../ui/icon";
import { JsonView } from "../../ui/json-view";
import { Tabs } from "../../ui/tabs";
import { AnswerForm } from "./dialogs";
import { keptOf, size, wholeEvent, wholeResult, type Kept } from "./event";
import { Logs } from "./logs";

interface Props {
  id: string;
  story: Story;
  moment: Moment;
  step: string;
  command: Command | null;
  choose(command: Command): void;
  close(): void;
  tab: string | null;
  setTab(tab: string): void;
}

export function StepPanel({ id, story, moment, step, command, choose, close, tab, setTab }: Props) {
  const state = moment.steps.get(step);
  const commands = story.commands.filter((one) => one.step === step && one.issuedSeq <= moment.seq);
  // A failed step opens at the piece that failed.
  const shown = command ?? commands.findLast((one) => changeAt(one, moment.seq)?.state === "failed") ?? commands.at(-1) ?? null;
  const change = shown && changeAt(shown, moment.seq);
  const failed = shown?.failedSeq !== null && shown !== null && (shown.failedSeq ?? Infinity) <= moment.seq;
  const done = shown?.doneSeq !== null && shown !== null && (shown.doneSeq ?? Infinity) <= moment.seq;
  const first = failed ? "error" : done ? "result" : "input";
  return (
    <section className="panel step-panel" aria-label={`Step ${step}`}>
      <div className="line">
        <h2>{step}</h2>
        {state ? <Badge status={state.state} /> : <span className="faint">not reached at this moment</span>}
        <button type="button" className="quiet push" onClick={close} aria-label="Close the step">
          <Icon name="close" />
        </button>
      </div>
      {state?.error && (tab ?? first) !== "error" && <p className="failure">{state.error}</p>}
      {commands.length > 1 && <Pieces commands={commands} shown={shown} moment={moment} choose={choose} />}
      {shown && (
        <>
          <dl className="facts small">
            <dt>Tool</dt>
            <dd>{shown.tool}</dd>
            <dt>Command</dt>
            <dd>
              <Id id={shown.id} />
            </dd>
            {shown.worker && (
              <>
                <dt>Worker</dt>
                <dd>{shown.worker}</dd>
              </>
            )}
            {shown.child && (
              <>
                <dt>Started</dt>
                <dd>
                  <Link to={`/executions/${shown.child}`}>execution {shown.child}</Link>
                </dd>
              </>
            )}
          </dl>
          {change?.state === "waiting" && shown.token !== null && story.stateOf(shown) === "waiting" && (
            <AnswerForm id={id} command={shown.id} token={shown.token} seq={shown.issuedSeq} />
          )}
          <Tabs
            label={`About ${step}`}
            tabs={[
              { name: "input", title: "Input" },
              { name: "result", title: "Result", disabled: !done },
              { name: "error", title: "Error", disabled: !failed },
              { name: "logs", title: "Logs" },
            ]}
            chosen={tab ?? first}
            choose={setTab}
          >
            {(name) => (
              <>
                {name === "input" && <Input id={id} seq={shown.issuedSeq} />}
                {name === "result" && (done ? <Result id={id} seq={shown.doneSeq} /> : <p className="faint">No result at this moment.</p>)}
                {name === "error" && (failed ? <Problem id={id} seq={shown.failedSeq} /> : <p className="faint">Nothing went wrong up to this moment.</p>)}
                {name === "logs" && <Logs id={id} command={shown.id} isOpen={change?.state === "running"} />}
              </>
            )}
          </Tabs>
        </>
      )}
    </section>
  );
}

/** Which attempt or item of several to look at. */
function Pieces({ commands, shown, moment, choose }: { commands: Command[]; shown: Command | null; moment: Moment; choose(command: Command): void }) {
  // A list of ten thousand is no list to choose from: those around the shown one, and the failed ones.
  const most = 500;
  const failed = commands.filter((one) => changeAt(one, moment.seq)?.state === "failed");
  const listed = commands.length <= most ? commands : [...new Set([...failed.slice(0, most / 2), ...commands.slice(-most / 2), ...(shown ? [shown] : [])])];
  return (
    <label>
      {commands.length} pieces of work{failed.length > 0 && `, ${failed.length} failed`}
      <select
        value={shown?.id ?? ""}
        onChange={(event) => {
          const found = commands.find((one) => one.id === event.target.value);
          if (found) choose(found);
        }}
      >
        {listed.map((one) => (
          <option key={one.id} value={one.id}>
            {[
              one.visit > 1 ? `visit ${one.visit}` : null,
              one.item === null ? null : `item ${one.item}`,
              `attempt ${one.attempt}`,
              changeAt(one, moment.seq)?.state,
            ]
              .filter(Boolean)
              .join(", ")}
          </option>
        ))}
      </select>
    </label>
  );
}

function Input({ id, seq }: { id: string; seq: number }) {
  const { data, error, refetch } = useQuery(wholeEvent(id, seq));
  if (error) return <Failure of="The input cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the input" />;
  const args = field(data.context, "args") ?? {};
  const config = field(data.context, "tool_config") ?? data.context ?? null;
  const code = text(field(config, "code")) ?? text(field(config, "command")) ?? text(field(config, "query"));
  return (
    <>
      <h3>Rendered input</h3>
      <JsonView value={args} label="the input" />
      {code !== undefined && (
        <>
          <h3>
            Code <Copy text={code} label="Copy the code" />
          </h3>
          <pre className="code" tabIndex={0}>
            {code}
          </pre>
        </>
      )}
      <h3>Settings of the tool</h3>
      <JsonView value={config} label="the settings" />
    </>
  );
}

function Result({ id, seq }: { id: string; seq: number | null }) {
  const { data, error, refetch } = useQuery(wholeEvent(id, seq));
  if (error) return <Failure of="The result cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the result" />;
  const kept = keptOf(id, data);
  const value = field(data.result, "context", "data") ?? field(data.result, "context", "result") ?? data.result ?? null;
  return (
    <>
      <JsonView value={value} label="the result" />
      {kept && <Large kept={kept} />}
    </>
  );
}

/** A result that is too large to come along unasked. */
function Large({ kept }: { kept: Kept }) {
  const [wanted, setWanted] = useState(false);
  const { data, error, isFetching, refetch } = useQuery({ ...wholeResult(kept), enabled: wanted });
  if (error) return <Failure of="The whole result cannot be shown" error={error} retry={refetch} />;
  if (data !== undefined) {
    return (
      <>
        <h3>The whole result, {size(kept.bytes)}</h3>
        <JsonView value={data} label="the whole result" />
      </>
    );
  }
  return (
    <p>
      Above is a part of it.{" "}
      <button type="button" onClick={() => setWanted(true)} disabled={isFetching}>
        {isFetching ? "Loading…" : `Load the whole result, ${size(kept.bytes)}`}
      </button>
    </p>
  );
}

/** What went wrong: its kind, its sentence, the expression or line that failed, and the rest as it was said. */
function Problem({ id, seq }: { id: string; seq: number | null }) {
  const { data, error, refetch } = useQuery(wholeEvent(id, seq));
  if (error) return <Failure of="The error cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the error" />;
  const said = field(data.result, "context", "error");
  const details = field(said, "details");
  const expression = text(field(details, "expression")) ?? text(field(details, "template")) ?? text(field(said, "expression"));
  const traceback = text(field(details, "traceback")) ?? text(field(details, "stderr"));
  return (
    <>
      <p className="failure" role="alert">
        <strong>{text(field(said, "kind")) ?? "error"}</strong>: {text(field(said, "message")) ?? data.error}
      </p>
      {expression !== undefined && (
        <>
          <h3>The expression that failed</h3>
          <pre className="code wraps" tabIndex={0}>
            {expression}
          </pre>
        </>
      )}
      {traceback !== undefined && traceback !== "" && (
        <>
          <h3>
            What the tool said <Copy text={traceback} label="Copy what the tool said" />
          </h3>
          <pre className="code wraps" tabIndex={0}>
            {traceback}
          </pre>
        </>
      )}
      {isObject(said) && <JsonView value={said as Json} label="the error" />}
    </>
  );
}

// Where documents are written: looked at by the server while one types, registered from here.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";

import { catalog, type RegisterReply } from "../../api/catalog";
import { ApiError, send, shown } from "../../api/client";
import type { Diagnostic } from "../../api/types";
import { Link, useSearch } from "../../shell/router";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { entryAddress } from "../catalog/address";
import { findings, useCheck } from "./check";
import type { Field } from "./code";
import { draft, keepDraft } from "./draft";
import { FIRST } from "./first";
import "./editor.css";

const Code = lazy(() => import("./code"));

export default function EditorPage() {
  const [query] = useSearch();
  const path = query.get("path");
  const version = query.get("version");
  const found = useQuery({
    ...catalog.document(path ?? "", version),
    enabled: path !== null,
    // What is under the writer's hands is not read again.
    staleTime: Infinity,
  });
  if (path === null) return <Writing key="new" of="" base={null} first={FIRST} />;
  if (found.error) return <Failure of={`${path} cannot be edited`} error={found.error} retry={found.refetch} />;
  if (!found.data) return <Loading of={path} />;
  const { content } = found.data;
  return <Writing key={`${path} ${version}`} of={path} base={content ?? ""} first={content ?? ""} />;
}

interface Props {
  /** The path of the document, or nothing for a new one. */
  of: string;
  /** What is registered; nothing for a new one. */
  base: string | null;
  first: string;
}

type Outcome = { reply: RegisterReply } | { failure: ApiError; at: Diagnostic[]; text: string };

function Writing({ of, base, first }: Props) {
  const client = useQueryClient();
  const field = useRef<Field>(null);
  const [registered, setRegistered] = useState(base);
  const [text, setText] = useState(() => draft(of) ?? first);
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const checked = useCheck(text);
  const isDraft = text !== (registered ?? first);

  useEffect(() => keepDraft(of, isDraft ? text : null), [of, text, isDraft]);

  const refused = outcome && "failure" in outcome && outcome.text === text ? outcome : null;
  const diagnostics = refused?.at.length ? refused.at : (checked.reply?.diagnostics ?? NONE);

  const register = useCallback(async () => {
    if (busy) return;
    setBusy(true);
    setOutcome(null);
    try {
      const reply = await send<RegisterReply>("/api/catalog/register", { content: text });
      setRegistered(text);
      setOutcome({ reply });
      void client.invalidateQueries({ queryKey: ["catalog"] });
      void client.invalidateQueries({ queryKey: ["versions", reply.path] });
      void client.invalidateQueries({ queryKey: ["document"] });
    } catch (error) {
      const failure = shown(error);
      const at = findings(failure.body);
      setOutcome({ failure, at, text });
      const worst = at.find((one) => one.severity === "error") ?? at[0];
      if (worst) field.current?.goTo(worst.line, worst.column);
    } finally {
      setBusy(false);
    }
  }, [busy, client, text]);

  return (
    <div className="stack">
      <div className="line">
        <h1>{of === "" ? "New document" : `Edit ${of}`}</h1>
        <span className="push" />
        {isDraft && (
          <button type="button" className="quiet" onClick={() => setText(registered ?? first)}>
            Discard changes
          </button>
        )}
        <button type="button" className="primary" onClick={register} disabled={busy || text === registered}>
          {busy ? "Registering…" : text === registered ? "Registered" : "Register"}
        </button>
      </div>
      {outcome && "reply" in outcome && <Registered reply={outcome.reply} changed={text !== registered} />}
      {refused && refused.at.length === 0 && <Failure of="It was not registered" error={refused.failure} />}
      {refused && refused.at.length > 0 && (
        <p className="failure" role="alert">
          <strong>It was not registered:</strong> mend what is named below, then register again.
        </p>
      )}
      <Suspense fallback={<Loading of="the editor" />}>
        <Code ref={field} text={text} change={setText} save={register} diagnostics={diagnostics} label="The document" />
      </Suspense>
      <Findings
        diagnostics={diagnostics}
        state={checked.failure ? checked.failure : checked.text === text ? "checked" : "checking"}
        goTo={(line, column) => field.current?.goTo(line, column)}
      />
      <p className="small faint">
        <kbd>Ctrl</kbd> <kbd>Space</kbd> offers what can stand here, <kbd>Ctrl</kbd> <kbd>S</kbd> registers,{" "}
        <kbd>Ctrl</kbd> <kbd>]</kbd> and <kbd>Ctrl</kbd> <kbd>[</kbd> indent. <kbd>Tab</kbd> leaves the text.
      </p>
    </div>
  );
}

const NONE: Diagnostic[] = [];

function Registered({ reply, changed }: { reply: RegisterReply; changed: boolean }) {
  return (
    <p className="notice" role="status">
      Registered as version {reply.version} of <Link to={entryAddress(reply.path)}>{reply.path}</Link>
      {changed ? "; changed since." : "."}{" "}
      {reply.kind === "playbook" && !changed && (
        <Link to={entryAddress(reply.path, { run: "yes" })} className="button">
          Run it
        </Link>
      )}
    </p>
  );
}

interface FindingsProps {
  diagnostics: Diagnostic[];
  state: "checked" | "checking" | ApiError;
  goTo(line: number, column: number): void;
}

function Findings({ diagnostics, state, goTo }: FindingsProps) {
  const errors = diagnostics.filter((one) => one.severity === "error").length;
  const said =
    state === "checking"
      ? "Checking…"
      : diagnostics.length === 0
        ? "Nothing is wrong with it."
        : `${counted(errors, "error")}, ${counted(diagnostics.length - errors, "warning")}`;
  return (
    <section aria-label="Findings" className="panel">
      {state instanceof ApiError ? (
        <Failure of="It cannot be checked" error={state} />
      ) : (
        <p role="status" className={errors > 0 ? "bad" : "faint"}>
          {said}
        </p>
      )}
      {diagnostics.length > 0 && (
        <ul className="findings">
          {diagnostics.map((one, place) => (
            <li key={place}>
              <button type="button" className="quiet" onClick={() => goTo(one.line, one.column)}>
                <span className={`badge is-${one.severity === "error" ? "failed" : "cancelled"}`}>{one.severity}</span>{" "}
                <code>
                  {one.line}:{one.column}
                </code>{" "}
                {one.message} <span className="faint">{one.code}</span>
                {one.help && <span className="help">{one.help}</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

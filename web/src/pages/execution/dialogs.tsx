// What can be done with an execution: cancel it, fork it, run it again.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState, type ReactNode } from "react";

import { send } from "../../api/client";
import { field, isObject, parse, stringify, text, type Json } from "../../api/json";
import type { ForkReply } from "../../api/types";
import { useRouter } from "../../shell/router";
import { Failure } from "../../ui/failure";
import { JsonView } from "../../ui/json-view";
import { wholeEvent } from "./event";

export function Dialog({ title, close, children }: { title: string; close(): void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog ref={dialog} onClose={close} aria-label={title}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

export type Beginning = { at: number } | "failure" | "beginning";

interface ForkProps {
  id: string;
  /** Where to begin: after this event, before what failed, or at the beginning. */
  from: Beginning;
  workload: Json;
  close(): void;
}

/** Starts a fork: an execution with a copy of this one's events and an editable payload. */
export function ForkDialog({ id, from, workload, close }: ForkProps) {
  const { go } = useRouter();
  const [written, setWritten] = useState(() => stringify(isObject(workload) ? workload : {}, 2));
  const [wrong, setWrong] = useState<string | null>(null);
  const start = useMutation({
    mutationFn: (payload: { [key: string]: Json }) => {
      if (from === "beginning") return send<ForkReply>(`/api/executions/${id}/rerun`, { workload: payload });
      if (from === "failure") return send<ForkReply>(`/api/executions/${id}/retry`, { workload: payload });
      return send<ForkReply>(`/api/executions/${id}/fork`, { at: from.at, workload: payload });
    },
    onSuccess: (reply) => go(`/executions/${reply.execution_id}`),
  });
  const submit = () => {
    let payload: Json;
    try {
      payload = parse(written);
    } catch (failure) {
      setWrong(`The payload is not JSON: ${(failure as Error).message}`);
      return;
    }
    if (!isObject(payload)) {
      setWrong("The payload must be an object, as {\"name\": \"Ada\"}.");
      return;
    }
    setWrong(null);
    start.mutate(payload);
  };
  const said = wording(from);
  return (
    <Dialog title={said.title} close={close}>
      <p>{said.about} This one stays as it is.</p>
      <label className="wide">
        Payload, laid over the workload it had
        <textarea rows={12} spellCheck={false} value={written} onChange={(event) => setWritten(event.target.value)} />
      </label>
      {wrong !== null && (
        <p className="failure" role="alert">
          {wrong}
        </p>
      )}
      {start.error && <Failure of="It was not started" error={start.error} />}
      <div className="line">
        <button type="button" className="primary" onClick={submit} disabled={start.isPending}>
          {start.isPending ? "Starting…" : said.verb}
        </button>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function wording(from: Beginning): { title: string; about: string; verb: string } {
  if (from === "beginning") return { title: "Run again", about: "A new execution of the same playbook.", verb: "Run" };
  if (from === "failure") {
    return {
      title: "Retry what failed",
      about: "A new execution that begins with everything before the failure and tries again from there.",
      verb: "Retry",
    };
  }
  return {
    title: `Fork from event ${from.at}`,
    about: "Starts a new execution with all events up to here and continues from there. Work in flight is started again.",
    verb: "Fork",
  };
}

/** Asks once more, because what is cancelled does not come back. */
export function CancelDialog({ id, close }: { id: string; close(): void }) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const cancel = useMutation({
    mutationFn: () => send(`/api/executions/${id}/cancel`, { cascade: true, ...(reason.trim() ? { reason: reason.trim() } : {}) }),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["execution", id] });
      void client.invalidateQueries({ queryKey: ["why", id] });
      close();
    },
  });
  return (
    <Dialog title="Cancel this execution" close={close}>
      <p>What runs is told to stop, and everything it started is stopped with it. A late result changes nothing.</p>
      <label className="wide">
        Why
        <input type="text" value={reason} onChange={(event) => setReason(event.target.value)} placeholder="optional" />
      </label>
      {cancel.error && <Failure of="It was not cancelled" error={cancel.error} />}
      <div className="line">
        <button type="button" className="danger" onClick={() => cancel.mutate()} disabled={cancel.isPending}>
          {cancel.isPending ? "Cancelling…" : "Cancel it"}
        </button>
        <button type="button" onClick={close}>
          Let it run
        </button>
      </div>
    </Dialog>
  );
}

/** The answer of a person to a step that waits for one. */
export function AnswerForm({ id, command, token, seq }: { id: string; command: string; token: string; seq: number }) {
  const client = useQueryClient();
  const [note, setNote] = useState("");
  const answer = useMutation({
    mutationFn: (approved: boolean) =>
      send(`/api/executions/${id}/answers/${command}`, {
        token,
        data: { approved, ...(note.trim() ? { note: note.trim() } : {}) },
      }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["why", id] }),
  });
  const asked = useQuery(wholeEvent(id, seq));
  const config = field(asked.data?.context, "tool_config");
  const data = field(config, "data");
  if (answer.isSuccess) return <p role="status">Answered.</p>;
  return (
    <div className="stack answer">
      <p>
        This step waits for a person. <strong>{text(field(config, "message"))}</strong>
      </p>
      {data !== undefined && <JsonView value={data} label="what to decide about" />}
      <label className="wide">
        Note
        <input type="text" value={note} onChange={(event) => setNote(event.target.value)} placeholder="optional" />
      </label>
      <div className="line">
        <button type="button" className="primary" disabled={answer.isPending} onClick={() => answer.mutate(true)}>
          Approve
        </button>
        <button type="button" className="danger" disabled={answer.isPending} onClick={() => answer.mutate(false)}>
          Refuse
        </button>
      </div>
      {answer.error && <Failure of="The answer was not taken" error={answer.error} />}
    </div>
  );
}

// Steps that wait for a person, and what that person can say.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";

import { ApiError, shown } from "../../api/client";
import { stringify, type Json } from "../../api/json";
import { answer, operations, type Approval } from "../../api/operations";
import { Link } from "../../shell/router";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Time } from "../../ui/time";
import { payloadOf } from "../catalog/form";

export function ApprovalsPart() {
  const { data, error, refetch } = useQuery({ ...operations.approvals(), refetchInterval: 5000 });
  const [said, setSaid] = useState("");
  if (error) return <Failure of="What waits cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="what waits" />;
  return (
    <div className="stack">
      <p role="status" className={said ? "notice" : "visually-hidden"}>
        {said}
      </p>
      {data.approvals.length === 0 && data.next_after === null && (
        <Empty title="Nothing waits for anybody">
          <p>
            A step with <code>kind: approval</code> waits here for a decision. It looks like this in a playbook:
          </p>
          <pre className="code example">{EXAMPLE}</pre>
        </Empty>
      )}
      {data.approvals.map((one) => (
        <One key={one.command_id} approval={one} done={setSaid} />
      ))}
      {data.next_after !== null && <p className="faint">There are more; they are shown as these are answered.</p>}
    </div>
  );
}

const EXAMPLE = `- step: ask
  tool: {kind: approval, message: "Release version 2?", timeout: 1h}
  next:
    arcs:
      - {step: release, when: "{{ output.approved }}"}
      - {step: end}`;

function One({ approval, done }: { approval: Approval; done(said: string): void }) {
  const client = useQueryClient();
  const id = useId();
  const [note, setNote] = useState("");
  const [json, setJson] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const give = async (data: Json, word: string) => {
    setBusy(true);
    setFailure(null);
    try {
      await answer(approval, data);
      done(`${word}: step ${approval.step} of ${approval.path} continues.`);
    } catch (error) {
      setFailure(shown(error));
      setBusy(false);
    }
    void client.invalidateQueries({ queryKey: ["approvals"] });
  };
  const decided = (approved: boolean) => {
    const data: Json = note.trim() === "" ? { approved } : { approved, note: note.trim() };
    void give(data, approved ? "Approved" : "Rejected");
  };
  const written = json === null ? null : payloadOf(json);
  return (
    <article className="panel stack" aria-labelledby={id}>
      <div>
        <h2 id={id} className="asked">
          {approval.message ?? `Step ${approval.step} asks for a decision`}
        </h2>
        <p className="faint">
          Step <code>{approval.step}</code>
          {approval.item !== null && `, item ${approval.item}`} of <Link to={`/executions/${approval.execution_id}`}>{approval.path}</Link>, since{" "}
          <Time at={approval.since} relative />; it fails at <Time at={approval.until} />
        </p>
      </div>
      {approval.data !== null && (
        <pre className="code wraps" tabIndex={0} role="region" aria-label="What to look at">
          {stringify(approval.data, 2)}
        </pre>
      )}
      {json === null ? (
        <label>
          Note, kept with the decision
          <input type="text" value={note} onChange={(event) => setNote(event.target.value)} />
        </label>
      ) : (
        <label>
          Answer, in JSON
          <textarea rows={4} spellCheck={false} value={json} onChange={(event) => setJson(event.target.value)} />
          <span className="wrong">{typeof written === "string" ? written : ""}</span>
        </label>
      )}
      {failure && <Failure of={failure.status === 409 ? "The approval was already answered, or its timeout has passed" : "Couldn't send the answer"} error={failure} />}
      <div className="line">
        {json === null ? (
          <>
            <button type="button" className="primary" disabled={busy} onClick={() => decided(true)}>
              Approve
            </button>
            <button type="button" className="danger" disabled={busy} onClick={() => decided(false)}>
              Reject
            </button>
          </>
        ) : (
          <button
            type="button"
            className="primary"
            disabled={busy || typeof written === "string"}
            onClick={() => written !== null && typeof written !== "string" && give(written.value, "Answered")}
          >
            Answer
          </button>
        )}
        <button type="button" className="quiet push" onClick={() => setJson(json === null ? '{"approved": true}' : null)}>
          {json === null ? "Answer something else" : "Approve or reject"}
        </button>
      </div>
    </article>
  );
}

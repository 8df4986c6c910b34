// Credentials that steps use. This page sends secrets and never reads one.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";

import { ask, send, shown, type ApiError } from "../../api/client";
import { operations, type Credential } from "../../api/operations";
import { Confirm, Dialog } from "../../ui/dialog";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Time } from "../../ui/time";
import { payloadOf } from "../catalog/form";
import { PathGrants, playbooksOf } from "./grants";

export function CredentialsPart() {
  const client = useQueryClient();
  const { data, error, refetch } = useQuery(operations.credentials());
  const grants = useQuery(operations.grants());
  const [adding, setAdding] = useState(false);
  const [ending, setEnding] = useState<Credential | null>(null);
  const renew = () => client.invalidateQueries({ queryKey: ["credentials"] });
  if (error) return <Failure of="The credentials cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the credentials" />;
  return (
    <div className="stack">
      <div className="line">
        <button type="button" className="primary" onClick={() => setAdding(true)}>
          Keep a credential
        </button>
        <span className="faint">What is secret in them is never shown here.</span>
      </div>
      {data.length === 0 ? (
        <Empty title="No credential is kept">
          <p>
            A step names one as <code>auth: my-database</code>; what it holds stays on the server, encrypted, and goes only to the worker that runs the step.
          </p>
        </Empty>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Credentials">
          <table>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col">About</th>
                <th scope="col">Playbooks</th>
                <th scope="col">Changed</th>
                <th scope="col">
                  <span className="visually-hidden">Do</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((one) => (
                <tr key={one.id}>
                  <td className="breaks">
                    <code>{one.name}</code>
                  </td>
                  <td>{one.type}</td>
                  <td className="breaks">
                    {one.description} {one.tags?.map((tag) => <span key={tag} className="badge">{tag}</span>)}
                  </td>
                  <td className="breaks">{grants.data ? playbooksOf(one.name, grants.data) : "…"}</td>
                  <td>
                    <Time at={one.updated_at} />
                  </td>
                  <td>
                    <button type="button" className="danger" onClick={() => setEnding(one)} aria-label={`Remove ${one.name}`}>
                      remove
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {grants.data?.some((grant) => grant.role) && <PathGrants grants={grants.data} />}
      {adding && <Keep known={data} close={() => setAdding(false)} done={() => (setAdding(false), void renew())} />}
      {ending && (
        <Confirm
          title={`Remove ${ending.name}?`}
          action="Remove"
          close={() => setEnding(null)}
          run={async () => {
            await ask(`/api/credentials/${encodeURIComponent(ending.id)}`, { method: "DELETE" });
            void renew();
          }}
        >
          <p>Steps that name it fail from now on. It cannot be brought back from here.</p>
        </Confirm>
      )}
    </div>
  );
}

function Keep({ known, close, done }: { known: Credential[]; close(): void; done(): void }) {
  const [name, setName] = useState("");
  const [type, setType] = useState("");
  const [description, setDescription] = useState("");
  const [secret, setSecret] = useState("");
  const [failure, setFailure] = useState<ApiError | null>(null);
  const data = payloadOf(secret);
  const replaces = known.some((one) => one.name === name.trim());
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (typeof data === "string") return;
    setFailure(null);
    try {
      const about = description.trim() === "" ? {} : { description: description.trim() };
      await send("/api/credentials", { name: name.trim(), type: type.trim(), data: data.value, ...about });
      done();
    } catch (error) {
      setFailure(shown(error));
    }
  };
  return (
    <Dialog title="Keep a credential" close={close}>
      <form className="stack" onSubmit={submit} autoComplete="off">
        <div className="line ends">
          <label>
            Name
            <input type="text" required value={name} onChange={(event) => setName(event.target.value)} />
          </label>
          <label>
            Type
            <input type="text" required list="types" placeholder="postgres" value={type} onChange={(event) => setType(event.target.value)} />
            <datalist id="types">
              {["postgres", "http", "bearer", "basic", "api_key", "nats"].map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          </label>
        </div>
        <label>
          What it is for
          <input type="text" value={description} onChange={(event) => setDescription(event.target.value)} />
        </label>
        <label>
          What it holds, in JSON; it is sent once and never shown again
          <textarea rows={5} required spellCheck={false} autoComplete="off" value={secret} onChange={(event) => setSecret(event.target.value)} placeholder={'{"token": "…"}'} />
          <span className="wrong">{secret !== "" && typeof data === "string" ? data : ""}</span>
        </label>
        {replaces && <p className="wrong">There is one with this name; it is replaced.</p>}
        {failure && <Failure of="It was not kept" error={failure} />}
        <div className="line">
          <button type="submit" className="primary" disabled={typeof data === "string"}>
            {replaces ? "Replace it" : "Keep it"}
          </button>
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </form>
    </Dialog>
  );
}

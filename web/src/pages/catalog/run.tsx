// Starts a playbook: with a form made from its workload, or with a payload in JSON.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, type FormEvent } from "react";

import { catalog, type Form } from "../../api/catalog";
import { send, shown } from "../../api/client";
import { stringify } from "../../api/json";
import type { CatalogEntry } from "../../api/types";
import { useRouter } from "../../shell/router";
import { Dialog } from "../../ui/dialog";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Fields } from "./fields";
import { filled, payloadOf, type Typed } from "./form";

export function Run({ entry, close }: { entry: CatalogEntry; close(): void }) {
  const { data, error, refetch } = useQuery(catalog.form(entry.path, entry.version));
  return (
    <Dialog title={`Run ${entry.path}, version ${entry.version}`} close={close}>
      {error && <Failure of="Its form cannot be shown" error={error} retry={refetch} />}
      {!data && !error && <Loading of="the form" />}
      {data && <Filling form={data} entry={entry} close={close} />}
    </Dialog>
  );
}

function Filling({ form, entry, close }: { form: Form; entry: CatalogEntry; close(): void }) {
  const { go } = useRouter();
  const shownForm = useRef<HTMLFormElement>(null);
  // The form is rendered after its dialog, so it moves the focus to the first field itself.
  useEffect(() => shownForm.current?.querySelector<HTMLElement>("input, select, textarea")?.focus(), []);
  const hasFields = form.fields.length > 0;
  const [typed, setTyped] = useState<Typed>({});
  const [json, setJson] = useState<string | null>(hasFields ? null : "{}");
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);

  const { payload, errors } = filled(form.fields, typed);
  const written = json === null ? null : payloadOf(json);
  const wrong = written === null ? Object.keys(errors).length > 0 : typeof written === "string";

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (wrong || busy) return;
    setBusy(true);
    setFailure(null);
    try {
      const body = written === null || typeof written === "string" ? payload : written.value;
      const said = await send<{ execution_id: string }>("/api/execute", { catalog_id: entry.catalog_id, payload: body });
      go(`/executions/${said.execution_id}`);
    } catch (error) {
      setFailure(shown(error));
      setBusy(false);
    }
  };

  return (
    <form ref={shownForm} className="stack" onSubmit={submit} noValidate>
      {form.description_markdown && <p className="description">{form.description_markdown}</p>}
      {json === null ? (
        <Fields fields={form.fields} typed={typed} errors={tried ? errors : {}} change={(place, text) => setTyped((last) => ({ ...last, [place]: text }))} />
      ) : (
        <label>
          Payload, in JSON; it is laid over the playbook’s workload
          <textarea
            rows={8}
            value={json}
            spellCheck={false}
            onChange={(event) => setJson(event.target.value)}
            aria-invalid={tried && wrong}
            aria-describedby="payload-wrong"
          />
          <span id="payload-wrong" className="wrong" role={tried && wrong ? "alert" : undefined}>
            {tried && typeof written === "string" ? written : ""}
          </span>
        </label>
      )}
      {failure !== null && <Failure of="It was not started" error={failure} />}
      <div className="line">
        <button type="submit" className="primary" disabled={busy}>
          {busy ? "Starting…" : "Run"}
        </button>
        <button type="button" onClick={close}>
          Close
        </button>
        {hasFields && (
          <button
            type="button"
            className="quiet push"
            onClick={() => setJson(json === null ? stringify(payload, 2) : null)}
            disabled={json === null && Object.keys(errors).length > 0}
          >
            {json === null ? "Write JSON instead" : "Fill in the form instead"}
          </button>
        )}
      </div>
    </form>
  );
}

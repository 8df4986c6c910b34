// A schedule, made by hand.

import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";

import { send, shown, type ApiError } from "../../api/client";
import type { Json } from "../../api/json";
import { queries } from "../../api/queries";
import { Dialog } from "../../ui/dialog";
import { Failure } from "../../ui/failure";
import { payloadOf } from "../catalog/form";
import { documents } from "../catalog/list";

const WAYS = {
  cron: { name: "by a cron expression", example: "30 7 * * mon-fri" },
  every: { name: "every so often", example: "15m" },
  at: { name: "once", example: "2030-01-31T09:00:00Z" },
};

export function NewSchedule({ close, done }: { close(): void; done(): void }) {
  const { data } = useQuery(queries.catalog("playbook"));
  const [playbook, setPlaybook] = useState("");
  const [way, setWay] = useState<keyof typeof WAYS>("cron");
  const [time, setTime] = useState("");
  const [timezone, setTimezone] = useState(() => Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [payload, setPayload] = useState("");
  const [failure, setFailure] = useState<ApiError | null>(null);
  const read = payloadOf(payload);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (typeof read === "string") return;
    setFailure(null);
    const spec: { [key: string]: Json } = { playbook: playbook.trim(), [way]: time.trim() };
    if (way === "cron" && timezone.trim() !== "") spec["timezone"] = timezone.trim();
    if (Object.keys(read.value).length > 0) spec["payload"] = read.value;
    try {
      await send("/api/schedules", spec);
      done();
    } catch (error) {
      setFailure(shown(error));
    }
  };
  return (
    <Dialog title="New schedule" close={close}>
      <form className="stack" onSubmit={submit}>
        <label>
          Playbook
          <input type="text" list="playbooks" required value={playbook} onChange={(event) => setPlaybook(event.target.value)} />
          <datalist id="playbooks">
            {documents(data ?? []).map((one) => (
              <option key={one.newest.path} value={one.newest.path} />
            ))}
          </datalist>
        </label>
        <div className="line ends">
          <label>
            When
            <select value={way} onChange={(event) => setWay(event.target.value as keyof typeof WAYS)}>
              {Object.entries(WAYS).map(([key, { name }]) => (
                <option key={key} value={key}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label>
            {`As ${WAYS[way].example}`}
            <input type="text" required value={time} onChange={(event) => setTime(event.target.value)} />
          </label>
          {way === "cron" && (
            <label>
              Time zone
              <input type="text" value={timezone} onChange={(event) => setTimezone(event.target.value)} />
            </label>
          )}
        </div>
        <label>
          Payload in JSON, if it has one
          <textarea rows={3} spellCheck={false} value={payload} onChange={(event) => setPayload(event.target.value)} />
          <span className="wrong">{typeof read === "string" ? read : ""}</span>
        </label>
        {failure && <Failure of="It was not made" error={failure} />}
        <div className="line">
          <button type="submit" className="primary" disabled={typeof read === "string"}>
            Make it
          </button>
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </form>
    </Dialog>
  );
}

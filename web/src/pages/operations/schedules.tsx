// Playbooks that are started by the clock.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ask, send, shown, type ApiError } from "../../api/client";
import { operations, type Schedule } from "../../api/operations";
import { Link, useRouter } from "../../shell/router";
import { Confirm } from "../../ui/dialog";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { roundly, Time } from "../../ui/time";
import { entryAddress } from "../catalog/address";
import { NewSchedule } from "./new-schedule";

export function SchedulesPart() {
  const client = useQueryClient();
  const { go } = useRouter();
  const { data, error, refetch } = useQuery({ ...operations.schedules(), refetchInterval: 5000 });
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [adding, setAdding] = useState(false);
  const [ending, setEnding] = useState<Schedule | null>(null);
  const renew = () => client.invalidateQueries({ queryKey: ["schedules"] });
  const act = async (one: Schedule, action: string) => {
    setFailure(null);
    try {
      const said = await send<{ execution_id?: string }>(`/api/schedules/${one.schedule_id}/${action}`);
      if (action === "run" && said.execution_id) go(`/executions/${said.execution_id}`);
      void renew();
    } catch (error) {
      setFailure(shown(error));
    }
  };
  if (error) return <Failure of="The schedules cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the schedules" />;
  return (
    <div className="stack">
      <div className="line">
        <button type="button" className="primary" onClick={() => setAdding(true)}>
          New schedule
        </button>
      </div>
      {failure && <Failure of="It was not done" error={failure} />}
      {data.length === 0 ? (
        <Empty title="Nothing is started by the clock">
          <p>
            A schedule starts a playbook by a cron expression, every so often, or once. Make one here, or register a document of <code>kind: Schedule</code>.
          </p>
        </Empty>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Schedules">
          <table>
            <thead>
              <tr>
                <th scope="col">Starts</th>
                <th scope="col">When</th>
                <th scope="col">Next</th>
                <th scope="col">Last</th>
                <th scope="col">Do</th>
              </tr>
            </thead>
            <tbody>
              {data.map((one) => (
                <tr key={one.schedule_id}>
                  <td className="breaks">
                    <Link to={entryAddress(one.playbook)}>{one.playbook}</Link>
                    {one.name && <div className="small faint">{one.name}</div>}
                    {one.document && (
                      <div className="small">
                        from <Link to={entryAddress(one.document)}>{one.document}</Link>
                      </div>
                    )}
                  </td>
                  <td>{when(one)}</td>
                  <td>{one.enabled ? one.next_run_at ? <Time at={one.next_run_at} /> : "never again" : <span className="badge is-waiting">paused</span>}</td>
                  <td>
                    {one.last_run_at && <Time at={one.last_run_at} />} {one.last_status}
                  </td>
                  <td>
                    <div className="line">
                      <button type="button" onClick={() => act(one, one.enabled ? "pause" : "resume")} aria-label={`${one.enabled ? "Pause" : "Resume"} ${label(one)}`}>
                        {one.enabled ? "pause" : "resume"}
                      </button>
                      <button type="button" onClick={() => act(one, "run")} aria-label={`Run now: ${label(one)}`}>
                        run now
                      </button>
                      {!one.document && (
                        <button type="button" className="danger" onClick={() => setEnding(one)} aria-label={`Delete ${label(one)}`}>
                          delete
                        </button>
                      )}
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {adding && <NewSchedule close={() => setAdding(false)} done={() => (setAdding(false), void renew())} />}
      {ending && (
        <Confirm
          title={`Delete the schedule of ${ending.playbook}?`}
          action="Delete"
          close={() => setEnding(null)}
          run={async () => {
            await ask(`/api/schedules/${ending.schedule_id}`, { method: "DELETE" });
            void renew();
          }}
        >
          <p>Its running executions continue. To stop it for a while, pause it instead.</p>
        </Confirm>
      )}
    </div>
  );
}

function label(one: Schedule): string {
  return one.name ?? one.playbook;
}

function when(one: Schedule) {
  if (one.cron) {
    return (
      <>
        <code>{one.cron}</code> {one.timezone ?? "UTC"}
      </>
    );
  }
  if (one.interval_seconds) return `every ${roundly(one.interval_seconds * 1000)}`;
  return one.at ? (
    <>
      once, <Time at={one.at} />
    </>
  ) : (
    ""
  );
}

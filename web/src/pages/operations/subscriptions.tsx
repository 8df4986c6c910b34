// Messages that become executions: how each subscription stands, what moves it, what happened to it.

import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";

import { send, shown, type ApiError } from "../../api/client";
import { field, stringify } from "../../api/json";
import { operations, subscriptionEvents, type Subscription } from "../../api/operations";
import { queries } from "../../api/queries";
import { Link, useSearch } from "../../shell/router";
import { Confirm } from "../../ui/dialog";
import { Empty, Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { Time } from "../../ui/time";
import { entryAddress } from "../catalog/address";
import { documents } from "../catalog/list";
import { moves, TONES } from "./moves";

export function SubscriptionsPart() {
  const client = useQueryClient();
  const [query, change] = useSearch();
  const { data, error, refetch } = useQuery({ ...operations.subscriptions(), refetchInterval: 5000 });
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [ending, setEnding] = useState<Subscription | null>(null);
  const act = async (one: Subscription, action: string) => {
    setFailure(null);
    await send(`/api/subscriptions/${one.subscription_id}/${action}`);
    void client.invalidateQueries({ queryKey: ["subscriptions"] });
    void client.invalidateQueries({ queryKey: ["subscription", one.subscription_id] });
  };
  const tried = (one: Subscription, action: string) => {
    if (action === "deactivate") setEnding(one);
    else act(one, action).catch((error: unknown) => setFailure(shown(error)));
  };
  if (error) return <Failure of="The subscriptions cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the subscriptions" />;
  const open = data.find((one) => one.subscription_id === query.get("log"));
  return (
    <div className="stack">
      <Register known={data} />
      {failure && <Failure of="It was not moved" error={failure} />}
      {data.length === 0 ? (
        <Empty title="There is no subscription">
          <p>
            A document of <code>kind: Subscription</code> says where messages come from and which playbook each starts. <Link to="/editor">Write one</Link>, then
            register it above.
          </p>
        </Empty>
      ) : (
        <div className="scroll" tabIndex={0} role="region" aria-label="Subscriptions">
          <table>
            <thead>
              <tr>
                <th scope="col">Path</th>
                <th scope="col">State</th>
                <th scope="col">Last</th>
                <th scope="col">Changed</th>
                <th scope="col">Do</th>
              </tr>
            </thead>
            <tbody>
              {data.map((one) => (
                <tr key={one.subscription_id}>
                  <td className="breaks">
                    <Link to={entryAddress(one.path)}>{one.path}</Link>
                  </td>
                  <td>
                    <span className={`badge is-${TONES[one.state] ?? "pending"}`}>{one.state.toLowerCase()}</span>
                  </td>
                  <td>{one.last_event_type}</td>
                  <td>{one.updated_at && <Time at={one.updated_at} relative />}</td>
                  <td>
                    <div className="line">
                      {moves(one.state).map((action) => (
                        <button
                          type="button"
                          key={action}
                          className={action === "deactivate" ? "danger" : ""}
                          onClick={() => tried(one, action)}
                          aria-label={`${action} ${one.path}`}
                        >
                          {action}
                        </button>
                      ))}
                      <button
                        type="button"
                        className="quiet"
                        aria-pressed={open === one}
                        onClick={() => change({ log: open === one ? null : one.subscription_id })}
                        aria-label={`Log of ${one.path}`}
                      >
                        log
                      </button>
                    </div>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {open && <Log key={open.subscription_id} subscription={open} />}
      {ending && (
        <Confirm title={`Deactivate ${ending.path}?`} action="Deactivate" close={() => setEnding(null)} run={() => act(ending, "deactivate")}>
          <p>It fetches and accepts no messages until it is activated again. To finish messages in flight first, drain it instead.</p>
        </Confirm>
      )}
    </div>
  );
}

/** Makes a document of the catalog a subscription. */
function Register({ known }: { known: Subscription[] }) {
  const client = useQueryClient();
  const { data, error, refetch } = useQuery(queries.catalog("subscription"));
  const [path, setPath] = useState("");
  const [failure, setFailure] = useState<ApiError | null>(null);
  const registered = new Set(known.filter((one) => one.state !== "DEACTIVATED").map((one) => one.path));
  const paths = documents(data ?? []).map((one) => one.newest.path).filter((one) => !registered.has(one));
  if (error && !data) return <Failure of="What could be registered cannot be told" error={error} retry={refetch} />;
  if (paths.length === 0) return null;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setFailure(null);
    try {
      await send("/api/subscriptions", { path: path || (paths[0] ?? "") });
      setPath("");
      void client.invalidateQueries({ queryKey: ["subscriptions"] });
    } catch (error) {
      setFailure(shown(error));
    }
  };
  return (
    <form className="line ends" onSubmit={submit}>
      <label>
        Document to register
        <select value={path || paths[0]} onChange={(event) => setPath(event.target.value)}>
          {paths.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <button type="submit">Register</button>
      {failure && <Failure of="It was not registered" error={failure} />}
    </form>
  );
}

function Log({ subscription }: { subscription: Subscription }) {
  const id = subscription.subscription_id;
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ["subscription", id],
    queryFn: ({ pageParam, signal }) => subscriptionEvents(id, pageParam, { signal }),
    initialPageParam: 0,
    getNextPageParam: (last) => (last.has_more ? last.next_after : undefined),
  });
  if (error) return <Failure of="The log cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the log" />;
  const events = data.pages.flatMap((page) => page.events);
  return (
    <section aria-label={`Log of ${subscription.path}`} className="stack">
      <div className="line">
        <h2>Log of {subscription.path}</h2>
        <button type="button" className="push" onClick={() => refetch()}>
          Read again
        </button>
      </div>
      <div className="scroll log" tabIndex={0} role="region" aria-label="Events">
        <table>
          <thead>
            <tr>
              <th scope="col">At</th>
              <th scope="col">Event</th>
              <th scope="col">What</th>
            </tr>
          </thead>
          <tbody>
            {events.map((event) => (
              <tr key={event.seq}>
                <td>
                  <Time at={event.created_at} />
                </td>
                <td>{event.event_type}</td>
                <td className="breaks">
                  <code>{said(event.context) || said(event.result) || event.error}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {events.length === 0 && <p className="faint">Nothing was said of it yet.</p>}
      {hasNextPage && (
        <button type="button" disabled={isFetchingNextPage} onClick={() => fetchNextPage()}>
          {isFetchingNextPage ? "Reading…" : "Read on"}
        </button>
      )}
    </section>
  );
}

function said(value: Parameters<typeof field>[0]): string {
  return value === null || value === undefined ? "" : stringify(value);
}

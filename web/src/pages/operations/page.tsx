// How the server and what works for it are doing, and what waits for a person.

import { useQuery } from "@tanstack/react-query";

import { operations } from "../../api/operations";
import { Parts } from "../../ui/parts";
import { ApprovalsPart } from "./approvals";
import { CredentialsPart } from "./credentials";
import { HealthPart } from "./health";
import { SchedulesPart } from "./schedules";
import { SubscriptionsPart } from "./subscriptions";
import { WorkersPart } from "./workers";
import { Empty } from "../../ui/empty";
import { Guard } from "../../ui/failure";
import "./operations.css";

const PARTS = [
  { part: "", name: "Health", Part: HealthPart },
  { part: "approvals", name: "Approvals", Part: ApprovalsPart },
  { part: "workers", name: "Workers", Part: WorkersPart },
  { part: "subscriptions", name: "Subscriptions", Part: SubscriptionsPart },
  { part: "schedules", name: "Schedules", Part: SchedulesPart },
  { part: "credentials", name: "Credentials", Part: CredentialsPart },
];

export default function OperationsPage({ params }: { params: Record<string, string> }) {
  const waiting = useQuery({ ...operations.approvals(), refetchInterval: 5000 });
  const current = PARTS.find(({ part }) => part === (params["part"] ?? ""));
  return (
    <div className="stack">
      <h1>Operations</h1>
      <Parts
        label="Parts of operations"
        current={current?.name ?? ""}
        parts={PARTS.map(({ part, name }) => ({
          name,
          to: part === "" ? "/operations" : `/operations/${part}`,
          count: part === "approvals" ? waiting.data?.approvals.length : undefined,
        }))}
      />
      {current ? (
        <Guard of={current.name}>
          <current.Part />
        </Guard>
      ) : (
        <Empty title="There is no such part" />
      )}
    </div>
  );
}

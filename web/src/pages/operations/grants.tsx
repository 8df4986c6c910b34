// Grants as the page of credentials shows them. They are made with `noetl grant create`.

import type { Grant } from "../../api/operations";
import { Time } from "../../ui/time";

/** Names the playbooks that may use a credential. */
export function playbooksOf(credential: string, grants: Grant[]): string {
  const own = grants.filter((grant) => grant.credential === credential);
  return own.length === 0 ? "all" : own.map((grant) => grant.prefix || "all").join(", ");
}

/** Paths to which roles are limited. */
export function PathGrants({ grants }: { grants: Grant[] }) {
  const paths = grants.filter((grant) => grant.role !== undefined);
  return (
    <section className="stack">
      <h2>Path grants</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label="Path grants">
        <table>
          <thead>
            <tr>
              <th scope="col">Role</th>
              <th scope="col">Paths</th>
              <th scope="col">Caller</th>
              <th scope="col">Created</th>
            </tr>
          </thead>
          <tbody>
            {paths.map((grant) => (
              <tr key={grant.id}>
                <td>{grant.role}</td>
                <td className="breaks">
                  <code>{grant.prefix || "/"}</code>
                </td>
                <td className="breaks">{grant.subject ?? "every caller with the role"}</td>
                <td>
                  <Time at={grant.created_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

import type { ReactNode } from "react";

/** What stands where nothing is yet, and how something comes there. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Something is on its way. */
export function Loading({ of }: { of: string }) {
  return (
    <p className="loading" role="status">
      Loading {of}…
    </p>
  );
}

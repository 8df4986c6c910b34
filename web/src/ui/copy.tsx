// Exact text that can be taken along.

import { useEffect, useState } from "react";

import { Icon } from "./icon";

/** A button that puts a text on the clipboard and says so. */
export function Copy({ text, label }: { text: string | (() => string); label: string }) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : text());
      setSaid("copied");
    } catch {
      // Pages that are not served over HTTPS or from this machine may not write there.
      setSaid("the browser forbids it");
    }
  };
  return (
    <button type="button" className="copy" onClick={copy} aria-label={label} title={label}>
      {said ?? <Icon name="copy" />}
    </button>
  );
}

/** An id, whole and copyable. */
export function Id({ id }: { id: string }) {
  return (
    <span className="id">
      <code>{id}</code>
      <Copy text={id} label={`Copy ${id}`} />
    </span>
  );
}

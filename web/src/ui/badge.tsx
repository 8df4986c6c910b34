// How something stands, by colour, sign and word: never by colour alone.

const SIGNS: Record<string, string> = {
  running: "▶",
  completed: "✓",
  failed: "✕",
  cancelled: "■",
  waiting: "◷",
  pending: "·",
  skipped: "–",
};

export function Badge({ status }: { status: string }) {
  const name = status.toLowerCase();
  return (
    <span className={`badge is-${name}`}>
      <span aria-hidden="true">{SIGNS[name] ?? "•"}</span> {name}
    </span>
  );
}

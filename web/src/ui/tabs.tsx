// One of several things in the same place.

import { useId, type KeyboardEvent, type ReactNode } from "react";

interface Props {
  label: string;
  tabs: { name: string; title: string; disabled?: boolean }[];
  chosen: string;
  choose(name: string): void;
  children(name: string): ReactNode;
}

export function Tabs({ label, tabs, chosen, choose, children }: Props) {
  const id = useId();
  const current = tabs.some((tab) => tab.name === chosen) ? chosen : (tabs[0]?.name ?? "");
  const key = (event: KeyboardEvent<HTMLDivElement>) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const open = tabs.filter((tab) => !tab.disabled);
    const place = open.findIndex((tab) => tab.name === current);
    const next = open[(place + by + open.length) % open.length];
    if (by === 0 || !next) return;
    event.preventDefault();
    choose(next.name);
    document.getElementById(`${id}${next.name}`)?.focus();
  };
  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} onKeyDown={key}>
        {tabs.map(({ name, title, disabled }) => (
          <button
            key={name}
            id={`${id}${name}`}
            type="button"
            role="tab"
            aria-selected={name === current}
            aria-controls={`${id}panel`}
            tabIndex={name === current ? 0 : -1}
            disabled={disabled}
            onClick={() => choose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${current}`} className="tabpanel">
        {children(current)}
      </div>
    </div>
  );
}

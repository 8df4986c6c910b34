// One slider over the whole log. The page shows the moment it stands at.

import { useEffect, useRef, useState } from "react";

import type { Story } from "../../model/story";
import { Copy } from "../../ui/copy";
import { Icon } from "../../ui/icon";
import { Time } from "../../ui/time";

/** Places a second while it plays; a long log is played in bigger steps, so that it takes a minute at most. */
const SPEED = 8;

interface Props {
  story: Story;
  /** The place it stands at. */
  at: number;
  /** Whether it stands at the end, whatever comes. */
  isLive: boolean;
  go(seq: number | null): void;
  /** The other moment to compare with, if there is one. */
  other: number | null;
  compare(seq: number | null): void;
  fork(seq: number): void;
}

export function Travel({ story, at: seq, isLive, go, other, compare, fork }: Props) {
  const [plays, setPlays] = useState(false);
  const last = story.last;
  const event = story.events[Math.max(0, seq - 1)];
  const at = useRef(seq);
  at.current = seq;

  useEffect(() => {
    if (!plays) return;
    const stride = Math.max(1, Math.ceil(last / (60 * SPEED)));
    const timer = setInterval(() => {
      const next = at.current + stride;
      if (next >= last) {
        setPlays(false);
        go(last);
      } else go(next);
    }, 1000 / SPEED);
    return () => clearInterval(timer);
  }, [plays, last, go]);

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      // Keys that belong to a field, or to a part that moves by itself, are not for the slider.
      if (target.closest("input, textarea, select, dialog, [contenteditable], .timeline, .graph")) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const act: Record<string, () => void> = {
        ",": () => go(Math.max(0, at.current - 1)),
        ".": () => go(Math.min(last, at.current + 1)),
        "<": () => go(Math.max(0, at.current - 10)),
        ">": () => go(Math.min(last, at.current + 10)),
        p: () => setPlays((before) => !before),
        l: () => go(null),
      };
      const found = act[event.key];
      if (!found) return;
      event.preventDefault();
      found();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [go, last]);

  return (
    <section className="panel travel" aria-label="Time travel">
      <div className="line travel-line">
        <span className="joined">
          <button type="button" onClick={() => go(0)} aria-label="To the beginning" title="To the beginning" disabled={seq === 0}>
            <Icon name="first" />
          </button>
          <button type="button" onClick={() => go(Math.max(0, seq - 1))} aria-label="One event back" title="One event back  ," disabled={seq === 0}>
            <Icon name="back" />
          </button>
          <button
            type="button"
            title="Play  p"
            onClick={() => {
              if (!plays && seq >= last) go(0);
              setPlays(!plays);
            }}
          >
            {plays ? "Pause" : "Play"}
          </button>
          <button type="button" onClick={() => go(Math.min(last, seq + 1))} aria-label="One event on" title="One event on  ." disabled={seq >= last}>
            <Icon name="on" />
          </button>
          <button type="button" onClick={() => go(null)} aria-pressed={isLive} aria-label={story.end ? "To the end" : "Live"} title="To the end  l">
            <Icon name="last" /> {story.end ? "end" : "live"}
          </button>
        </span>
        <input
          type="range"
          className="slider"
          min={0}
          max={last}
          value={seq}
          aria-label="Moment of the log"
          aria-valuetext={`event ${seq} of ${last}`}
          onChange={(change) => {
            setPlays(false);
            go(Number(change.target.value));
          }}
        />
        <span className="joined">
          {other === null ? (
            <button type="button" onClick={() => compare(seq)}>
              Compare from here
            </button>
          ) : (
            <button type="button" aria-pressed="true" onClick={() => compare(null)}>
              Comparing with event {other}; stop
            </button>
          )}
          <button type="button" onClick={() => fork(seq)} disabled={seq === 0}>
            Fork from here
          </button>
        </span>
      </div>
      <div className="line small travel-where">
        <span data-testid="moment">
          Event <strong>{seq}</strong> of {last}
        </span>
        {event && seq > 0 && (
          <span>
            <code>{event.event_type}</code> {event.node_name} · <Time at={event.timestamp} />
          </span>
        )}
        <Copy text={() => linkTo(seq)} label="Copy a link to this moment" />
        <span className="faint keys push">
          <kbd>,</kbd> <kbd>.</kbd> step · <kbd>&lt;</kbd> <kbd>&gt;</kbd> ten · <kbd>p</kbd> play · <kbd>l</kbd> end
        </span>
      </div>
    </section>
  );
}

function linkTo(seq: number): string {
  const address = new URL(location.href);
  address.searchParams.set("at", String(seq));
  return address.href;
}

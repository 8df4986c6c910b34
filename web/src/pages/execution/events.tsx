// The log itself: every event up to the shown moment and after it, drawn as far as it is in view.

import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useMemo, useRef, useState } from "react";

import type { Json } from "../../api/json";
import type { EventView } from "../../api/types";
import type { Story } from "../../model/story";
import { Id } from "../../ui/copy";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { JsonView } from "../../ui/json-view";
import { Time } from "../../ui/time";
import { both, clock, useZone } from "../../ui/zone";
import { wholeEvent } from "./event";

interface Props {
  id: string;
  story: Story;
  version: number;
  at: number;
  go(seq: number): void;
}

/** Drawn again only when what it shows changes: the slider moves often. */
export const Events = memo(function Events({ id, story, version, at, go }: Props) {
  const [wanted, setWanted] = useState("");
  const [open, setOpen] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => {
    const needle = wanted.trim().toLowerCase();
    if (needle === "") return story.events;
    return story.events.filter((event) =>
      [event.event_type, event.node_name, event.error, event.worker_id, event.event_id].some((said) => said?.toLowerCase().includes(needle)),
    );
  }, [story, version, wanted]);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => box.current,
    estimateSize: () => 32,
    overscan: 20,
    getItemKey: (place) => shown[place]?.seq ?? place,
  });
  const place = shown.findIndex((event) => event.seq >= at);
  useEffect(() => {
    if (place >= 0) virtual.scrollToIndex(place, { align: "auto" });
  }, [at]);
  return (
    <>
      <div className="line">
        <label>
          Type, step, worker, error or id
          <input type="search" value={wanted} onChange={(event) => setWanted(event.target.value)} placeholder="command.failed" />
        </label>
        <span className="small faint">
          {shown.length} of {story.events.length} events
        </span>
      </div>
      <div className="events" ref={box} tabIndex={0} role="group" aria-label="Events">
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const event = shown[item.index];
            if (!event) return null;
            return (
              <div
                key={item.key}
                ref={virtual.measureElement}
                data-index={item.index}
                className={`event${event.seq === at ? " current" : ""}${event.seq > at ? " later" : ""}`}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <Row event={event} isOpen={open === event.seq} turn={() => setOpen(open === event.seq ? null : event.seq)} go={go} />
                {open === event.seq && <Whole id={id} seq={event.seq} />}
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
});

function Row({ event, isOpen, turn, go }: { event: EventView; isOpen: boolean; turn(): void; go(seq: number): void }) {
  const zone = useZone();
  return (
    <div className="event-row">
      <button type="button" className="quiet" onClick={() => go(event.seq)} aria-label={`Go to event ${event.seq}`}>
        {event.seq}
      </button>
      <button type="button" className="json-fold" onClick={turn} aria-expanded={isOpen}>
        {isOpen ? "▾" : "▸"} <code>{event.event_type}</code> {event.node_name}
      </button>
      <span className="event-error">{event.error}</span>
      <span className="faint small" title={both(event.timestamp)}>
        {clock(event.timestamp, zone).slice(11)}
      </span>
    </div>
  );
}

function Whole({ id, seq }: { id: string; seq: number }) {
  const { data, error, refetch } = useQuery(wholeEvent(id, seq));
  if (error) return <Failure of="The event cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the event" />;
  return (
    <div className="event-whole">
      <p className="small">
        <Id id={data.event_id} /> <Time at={data.timestamp} />
      </p>
      <JsonView value={data as unknown as Json} label={`event ${seq}`} />
    </div>
  );
}

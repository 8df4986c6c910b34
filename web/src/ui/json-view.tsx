// A JSON value to look into: folded, searched, copied. Only what is in view is drawn, and every text in
// it is shown as text.

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";

import { stringify, type Json } from "../api/json";
import { Copy } from "./copy";
import "./json-view.css";
import { openAtFirst, plain, rowsOf, search, SHOWN, type JsonRow } from "./json-rows";

/** A longer text is cut in its row; copying takes all of it. */
const TEXT_MAX = 2000;

export function JsonView({ value, label }: { value: Json; label: string }) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => openAtFirst(value));
  const [more, setMore] = useState<ReadonlyMap<string, number>>(new Map());
  const [wanted, setWanted] = useState("");
  const [current, setCurrent] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    setOpen(openAtFirst(value));
    setMore(new Map());
  }, [value]);
  const rows = useMemo(() => rowsOf(value, open, more), [value, open, more]);
  const matches = useMemo(() => search(value, wanted), [value, wanted]);
  const hits = useMemo(() => new Set(matches.map((match) => match.path)), [matches]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => 24,
    overscan: 20,
    getItemKey: (place) => rows[place]?.path ?? place,
  });

  const shown = matches[current];
  useEffect(() => {
    if (!shown) return;
    setOpen((before) => new Set([...before, ...shown.parents.map((parent) => parent.path)]));
    setMore((before) => {
      const next = new Map(before);
      for (const { path, place } of shown.parents) {
        if (place >= (next.get(path) ?? SHOWN)) next.set(path, place + SHOWN);
      }
      return next;
    });
  }, [shown]);
  useEffect(() => {
    const place = shown ? rows.findIndex((row) => row.path === shown.path) : -1;
    if (place >= 0) virtual.scrollToIndex(place, { align: "auto" });
    // Only where the reader goes, not whatever else changes the rows.
  }, [shown, rows.length]);

  const turn = (row: JsonRow) => {
    const next = new Set(open);
    if (row.isOpen) next.delete(row.path);
    else next.add(row.path);
    setOpen(next);
  };

  return (
    <div className="json">
      <div className="line json-tools">
        <input
          type="search"
          aria-label={`Search in ${label}`}
          placeholder="Search"
          value={wanted}
          onChange={(event) => {
            setWanted(event.target.value);
            setCurrent(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter" && matches.length > 0) setCurrent((current + (event.shiftKey ? matches.length - 1 : 1)) % matches.length);
          }}
        />
        {wanted !== "" && (
          <span className="small faint" role="status">
            {matches.length === 0 ? "not found" : `${current + 1} of ${matches.length}${matches.length === 500 ? "+" : ""}`}
          </span>
        )}
        <Copy text={() => stringify(value, 2)} label={`Copy ${label} as JSON`} />
      </div>
      <div className="json-rows" ref={box} tabIndex={0} role="group" aria-label={label}>
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (!row) return null;
            return (
              <div
                key={item.key}
                ref={virtual.measureElement}
                data-index={item.index}
                className={`json-row${hits.has(row.path) ? " hit" : ""}${shown?.path === row.path ? " current" : ""}`}
                style={{ transform: `translateY(${item.start}px)`, paddingLeft: row.depth * 16 + 4 }}
              >
                <Row row={row} turn={turn} grow={() => setMore(new Map(more).set(row.path.slice(0, -2), (more.get(row.path.slice(0, -2)) ?? SHOWN) + 1000))} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Row({ row, turn, grow }: { row: JsonRow; turn(row: JsonRow): void; grow(): void }) {
  if (row.rest !== undefined) {
    return (
      <button type="button" className="quiet small" onClick={grow}>
        … {row.rest} more
      </button>
    );
  }
  const name = row.key === null ? null : <span className="json-key">{row.key}: </span>;
  if (row.size === null) {
    return (
      <>
        <span className="json-gap" />
        {name}
        <Value value={row.value} />
      </>
    );
  }
  const list = Array.isArray(row.value);
  return (
    <button type="button" className="json-fold" onClick={() => turn(row)} aria-expanded={row.isOpen} disabled={row.size === 0}>
      <span className="json-gap" aria-hidden="true">
        {row.size === 0 ? "" : row.isOpen ? "▾" : "▸"}
      </span>
      {name}
      <span className="faint">{list ? `[${row.size}]` : `{${row.size}}`}</span>
    </button>
  );
}

function Value({ value }: { value: Json }) {
  const text = plain(value);
  const kind = value === null ? "null" : typeof value === "string" ? "text" : typeof value === "boolean" ? "boolean" : "number";
  const cut = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}… (${text.length} characters)` : text;
  return (
    <>
      <span className={`json-${kind}`}>{kind === "text" ? `"${cut}"` : cut}</span>
      {kind === "text" && text.length > 80 && <Copy text={text} label="Copy this text" />}
    </>
  );
}

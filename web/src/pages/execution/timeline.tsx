// When what ran, on a canvas: ten thousand bars are drawn as fast as ten.

import { memo, useEffect, useMemo, useRef, useState } from "react";

import { atOnce, lanesOf, type Bar } from "../../model/lanes";
import type { Moment } from "../../model/moment";
import type { Command, Story } from "../../model/story";
import { useTheme } from "../../shell/theme";
import { duration, useNow } from "../../ui/time";
import { AXIS, LABELS, laneHeight, paint } from "./timeline-draw";

interface Props {
  story: Story;
  version: number;
  moment: Moment;
  chosen: string | null;
  choose(command: Command): void;
}

/** What of the time is shown, as parts of the whole. */
interface View {
  from: number;
  to: number;
}

const WHOLE: View = { from: 0, to: 1 };

/** Drawn again only when what it shows changes: the slider moves often. */
export const Timeline = memo(function Timeline({ story, version, moment, chosen, choose }: Props) {
  const [theme] = useTheme();
  const isOpen = moment.state === "running" && moment.seq === story.last;
  const now = useNow(500, isOpen);
  const until = isOpen ? now : moment.at;
  const lanes = useMemo(() => lanesOf(story, moment.seq, until), [story, version, moment.seq, until]);
  const [view, setView] = useState(WHOLE);
  const [hover, setHover] = useState<{ bar: Bar; x: number; y: number } | null>(null);
  const [top, setTop] = useState(0);
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const lane = laneHeight(lanes.byLane.length);
  const whole = lanes.to - lanes.from;
  const width = Math.max(1, size.width - LABELS);
  const from = lanes.from + view.from * whole;
  const span = Math.max(0.001, (view.to - view.from) * whole);
  const most = useMemo(() => atOnce(lanes.bars, until), [lanes, until]);

  useEffect(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || size.width === 0) return;
    const ratio = devicePixelRatio || 1;
    element.width = size.width * ratio;
    element.height = size.height * ratio;
    context.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    // Asked for once each: ten thousand bars have six colours.
    const known = new Map<string, string>();
    const colour = (name: string) => {
      const found = known.get(name) ?? style.getPropertyValue(`--${name}`).trim();
      known.set(name, found);
      return found;
    };
    paint(context, { lanes, size, top, from, span, until, chosen, colour });
  }, [lanes, size, top, from, span, until, chosen, theme]);

  const barAt = (event: { clientX: number; clientY: number }): Bar | null => {
    const place = canvas.current?.getBoundingClientRect();
    if (!place) return null;
    const bars = lanes.byLane[Math.floor((event.clientY - place.top + top - AXIS) / lane)] ?? [];
    const time = from + ((event.clientX - place.left - LABELS) / width) * span;
    const slack = (3 / width) * span;
    return bars.find((bar) => bar.from - slack <= time && time <= (bar.to ?? until) + slack) ?? null;
  };

  const zoom = (factor: number, at = 0.5) =>
    setView((before) => {
      const length = Math.min(1, Math.max(1e-6, (before.to - before.from) * factor));
      const middle = before.from + (before.to - before.from) * at;
      const begin = Math.max(0, Math.min(1 - length, middle - length * at));
      return { from: begin, to: begin + length };
    });
  const move = (by: number) =>
    setView((before) => {
      const length = before.to - before.from;
      const begin = Math.max(0, Math.min(1 - length, before.from + length * by));
      return { from: begin, to: begin + length };
    });

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const place = element.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, (event.clientX - place.left - LABELS) / width)));
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [width]);

  const keys: Record<string, () => void> = {
    "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1.4), "0": () => setView(WHOLE),
    ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
  };
  const height = Math.min(360, AXIS + lanes.byLane.length * lane + 6);
  return (
    <section aria-label="Timeline">
      <div className="line head">
        <h2>Timeline</h2>
        <span className="small faint">
          {lanes.bars.length} {lanes.bars.length === 1 ? "piece" : "pieces"} of work{most > 1 ? `, up to ${most} at once` : lanes.bars.length > 1 ? ", one after the other" : ""}. A thin line is
          waiting for a worker.
        </span>
        <span className="joined push">
          <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">
            +
          </button>
          <button type="button" onClick={() => zoom(2)} aria-label="Zoom out" disabled={view === WHOLE}>
            −
          </button>
          <button type="button" onClick={() => setView(WHOLE)} disabled={view === WHOLE}>
            Whole
          </button>
        </span>
      </div>
      <div
        className="timeline"
        ref={box}
        style={{ height }}
        tabIndex={0}
        role="img"
        aria-label={`${lanes.bars.length} pieces of work over ${duration(whole)}; zoom with plus and minus, move with the arrow keys`}
        data-bars={lanes.bars.length}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (!act) return;
          event.preventDefault();
          act();
        }}
      >
        <canvas
          ref={canvas}
          style={{ width: size.width, height: size.height }}
          onPointerMove={(event) => {
            const bar = barAt(event);
            setHover(bar ? { bar, x: event.clientX, y: event.clientY } : null);
          }}
          onPointerLeave={() => setHover(null)}
          onClick={(event) => {
            const bar = barAt(event);
            if (bar) choose(bar.command);
          }}
        />
        <div aria-hidden="true" style={{ height: Math.max(0, AXIS + lanes.byLane.length * lane - size.height) }} />
      </div>
      {hover && <Tip hover={hover} until={until} />}
    </section>
  );
});

function Tip({ hover: { bar, x, y }, until }: { hover: { bar: Bar; x: number; y: number }; until: number }) {
  const { command } = bar;
  const parts = [
    command.item === null ? null : `item ${command.item}`,
    command.attempt > 1 ? `attempt ${command.attempt}` : null,
    command.visit > 1 ? `visit ${command.visit}` : null,
    bar.state,
    duration((bar.to ?? until) - bar.from),
    bar.taken !== null && bar.taken > bar.from ? `waited ${duration(bar.taken - bar.from)}` : null,
    command.worker ? `on ${command.worker}` : null,
  ];
  return (
    <div className="tip" style={{ left: Math.min(x + 12, innerWidth - 260), top: y + 14 }}>
      <strong>{bar.step}</strong> {parts.filter(Boolean).join(", ")}
    </div>
  );
}

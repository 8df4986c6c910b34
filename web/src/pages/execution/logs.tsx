// What steps printed.

import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";

import { queries } from "../../api/queries";
import { Copy } from "../../ui/copy";
import { Loading } from "../../ui/empty";
import { Failure } from "../../ui/failure";
import { both, clock, useZone } from "../../ui/zone";

export function Logs({ id, command, isOpen }: { id: string; command?: string; isOpen: boolean }) {
  const { data, error, refetch } = useQuery({ ...queries.logs(id, command), refetchInterval: isOpen ? 1500 : false });
  const zone = useZone();
  const box = useRef<HTMLDivElement>(null);
  const lines = data?.lines ?? [];
  const virtual = useVirtualizer({ count: lines.length, getScrollElement: () => box.current, estimateSize: () => 20, overscan: 30 });
  if (error) return <Failure of="The lines cannot be shown" error={error} retry={refetch} />;
  if (!data) return <Loading of="the lines" />;
  if (lines.length === 0) return <p className="faint">Nothing was printed.</p>;
  const lost = data.gaps.reduce((sum, gap) => sum + gap.lines, 0);
  return (
    <>
      <p className="line small faint">
        {lines.length} lines{lost > 0 && `, ${lost} more were printed and not kept`}
        <Copy text={() => lines.map((line) => line.text).join("\n")} label="Copy all lines" />
      </p>
      <div className="code lines" ref={box} tabIndex={0} role="log" aria-label="Printed lines" aria-live="off">
        <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {virtual.getVirtualItems().map((item) => {
            const line = lines[item.index];
            if (!line) return null;
            return (
              <div
                key={line.n}
                ref={virtual.measureElement}
                data-index={item.index}
                className={`log-line ${line.stream}`}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <span className="faint" title={both(line.at)}>
                  {clock(line.at, zone).slice(11)}
                </span>{" "}
                {line.text}
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

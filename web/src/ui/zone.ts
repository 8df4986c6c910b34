// Whether times are told as clocks here show them, or in UTC.

import { choice } from "../shell/kept";

export type Zone = "local" | "UTC";

const zone = choice<Zone>("noetl.zone", ["local", "UTC"], () => "local");

export const useZone = zone.use;

export function turnZone(): void {
  zone.choose(zone.current() === "local" ? "UTC" : "local");
}

/** A time in a zone, with its thousandths: `2026-11-16 19:59:28.432`. */
export function clock(text: string, zone: Zone): string {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  if (zone === "UTC") return at.toISOString().replace("T", " ").replace("Z", "");
  const pad = (number: number, width = 2) => String(number).padStart(width, "0");
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${day} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}

/** The time in both zones, shown as a tooltip. */
export function both(text: string): string {
  return `${clock(text, "local")} local, ${clock(text, "UTC")} UTC`;
}

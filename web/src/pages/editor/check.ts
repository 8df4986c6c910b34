// What the server says of a text, soon after the writer pauses. Only the answer to the newest text counts.

import { useEffect, useState } from "react";

import type { CheckReply } from "../../api/catalog";
import { send, shown, type ApiError } from "../../api/client";
import { field, type Json } from "../../api/json";
import type { Diagnostic } from "../../api/types";

/** How long the writer has to pause before the text is looked at. */
const PAUSE_MS = 250;

export interface Checked {
  /** The text that was looked at; another one is being looked at when it is not the newest. */
  text: string | null;
  reply: CheckReply | null;
  failure: ApiError | null;
}

export function useCheck(text: string): Checked {
  const [checked, setChecked] = useState<Checked>({ text: null, reply: null, failure: null });
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const reply = await send<CheckReply>("/api/catalog/validate", { content: text }, { signal: stop.signal });
        if (!stop.signal.aborted) setChecked({ text, reply, failure: null });
      } catch (failure) {
        if (!stop.signal.aborted) setChecked((last) => ({ ...last, text, failure: shown(failure) }));
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return checked;
}

/** The findings that a refusal brings along. */
export function findings(body: Json | undefined): Diagnostic[] {
  const found = field(body, "diagnostics");
  if (!Array.isArray(found)) return [];
  return found.filter((one) => typeof field(one, "line") === "number") as unknown as Diagnostic[];
}

// Light or dark: what the system prefers, unless the user chose.

import { useCallback } from "react";

import { choice } from "./kept";

export type Theme = "light" | "dark";

const prefersDark = () => matchMedia("(prefers-color-scheme: dark)");

const theme = choice<Theme>(
  "noetl.theme",
  ["light", "dark"],
  () => (prefersDark().matches ? "dark" : "light"),
  (told) => {
    const media = prefersDark();
    const changed = () => (applyTheme(), told());
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  },
);

/** Marks the page, so that the style sheet and the canvases know. */
export function applyTheme(): void {
  document.documentElement.dataset["theme"] = theme.current();
}

/** The theme, and how to turn to the other one. */
export function useTheme(): [Theme, () => void] {
  const now = theme.use();
  const turn = useCallback(() => {
    theme.choose(theme.current() === "dark" ? "light" : "dark");
    applyTheme();
  }, []);
  return [now, turn];
}

// What was written and not registered yet outlives a page that is closed by mistake, for as long as the tab.

const KEY = "noetl.draft:";

export function draft(of: string): string | null {
  try {
    return sessionStorage.getItem(KEY + of);
  } catch {
    return null;
  }
}

/** Keeps a text, or forgets it when there is none. */
export function keepDraft(of: string, text: string | null): void {
  try {
    if (text === null) sessionStorage.removeItem(KEY + of);
    else sessionStorage.setItem(KEY + of, text);
  } catch {
    // Without room, or where storage is forbidden, it is held as long as the page.
  }
}

// The token a person signed in with. It lives as long as the browser's tab and is nowhere else.

const KEY = "noetl.token";
const listeners = new Set<() => void>();
const refused = new Set<() => void>();

/** Storage can be forbidden; a page without it still works until it is loaded again. */
let held: string | null = read();

function read(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** The token to show, if there is one. */
export function token(): string | null {
  return held;
}

/** Keeps a token for this tab. */
export function signIn(value: string): void {
  held = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {
    // It is held for as long as the page is open.
  }
  listeners.forEach((told) => told());
}

/** Forgets the token. */
export function signOut(): void {
  held = null;
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing was kept then.
  }
  listeners.forEach((told) => told());
}

/** Notifies listeners when the user signs in or out. */
export function onSession(told: () => void): () => void {
  listeners.add(told);
  return () => listeners.delete(told);
}

/** The server does not know who asks. */
export function sayRefused(): void {
  refused.forEach((told) => told());
}

/** Tells when the server does not know who asks. */
export function onRefused(told: () => void): () => void {
  refused.add(told);
  return () => refused.delete(told);
}

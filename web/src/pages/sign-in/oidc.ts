// Signing in at an identity provider: to its page with a challenge, back with a code, a token for the code.

import { send } from "../../api/client";

/** Where people sign in, as the server says. */
export interface Place {
  authorization_endpoint: string;
  client_id: string;
  scope: string;
  audience: string;
}

export interface AuthMode {
  mode: "open" | "token" | "oidc";
  sign_in: Place | null;
  trouble: string | null;
}

/** What is kept while the person is at the provider's. */
interface Begun {
  state: string;
  verifier: string;
  back: string;
}

const KEY = "noetl.signing-in";

/** Sends the person to the provider. */
export async function begin(place: Place, back: string): Promise<void> {
  if (!isSecureContext) throw new Error("browsers sign in only over HTTPS, or on the server’s own machine");
  const begun: Begun = { state: random(), verifier: random(), back };
  sessionStorage.setItem(KEY, JSON.stringify(begun));
  location.assign(await destination(place, begun, redirect()));
}

/** The address of the provider's page. */
export async function destination(place: Place, begun: { state: string; verifier: string }, redirect: string): Promise<string> {
  const to = new URL(place.authorization_endpoint);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier));
  const asked = {
    response_type: "code",
    client_id: place.client_id,
    redirect_uri: redirect,
    scope: place.scope,
    audience: place.audience,
    state: begun.state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(asked)) to.searchParams.set(name, value);
  return to.href;
}

/** What the provider sent the person back with, as a token and where the person was. */
export async function finish(query: URLSearchParams): Promise<{ token: string; back: string }> {
  const begun = taken();
  const refused = query.get("error");
  if (refused !== null) throw new Error(`the identity provider says: ${query.get("error_description") ?? refused}`);
  // An attacker who sends a user here with the attacker's code would have the user work under the attacker's identity.
  if (begun === null || query.get("state") !== begun.state) throw new Error("this sign-in was not begun in this tab; begin again");
  const said = await send<{ token: string }>("/api/auth/oidc/token", {
    code: query.get("code") ?? "",
    code_verifier: begun.verifier,
    redirect_uri: redirect(),
  });
  return { token: said.token, back: begun.back };
}

/** What was kept; it counts once. */
function taken(): Begun | null {
  const kept = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  if (kept === null) return null;
  return JSON.parse(kept) as Begun;
}

function redirect(): string {
  return `${location.origin}/sign-in`;
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

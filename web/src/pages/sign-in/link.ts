// Links that sign a browser in, as `noetl dev` and `noetl token link` print them.

import { send } from "../../api/client";

/** Returns the code in the fragment of an address. */
export function codeIn(hash: string): string | null {
  const code = new URLSearchParams(hash.replace(/^#/, "")).get("code");
  return code === null || code === "" ? null : code;
}

/** Trades a code for a token. A code counts once. */
export async function trade(code: string): Promise<string> {
  const said = await send<{ token: string }>("/api/auth/code", { code });
  return said.token;
}

import { expect, it } from "vitest";

import { destination } from "./oidc";
import { within } from "./back";

it("the provider is asked with a challenge, and never shown what it was made from", async () => {
  const place = { authorization_endpoint: "https://id.example/auth?tenant=a", client_id: "page", scope: "openid profile", audience: "noetl" };
  const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  const to = new URL(await destination(place, { state: "s", verifier }, "https://noetl.example/sign-in"));
  expect(to.origin + to.pathname).toBe("https://id.example/auth");
  expect(Object.fromEntries(to.searchParams)).toEqual({
    tenant: "a",
    response_type: "code",
    client_id: "page",
    redirect_uri: "https://noetl.example/sign-in",
    scope: "openid profile",
    audience: "noetl",
    state: "s",
    // As RFC 7636 computes it for this verifier.
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  expect(to.href).not.toContain(verifier);
});

it("the way back stays within the page", () => {
  expect(within("/catalog?text=a")).toBe("/catalog?text=a");
  for (const outside of ["", null, "https://x.example", "//x.example", "/\\x.example", "javascript:alert(1)", "/sign-in?back=%2F"]) {
    expect(within(outside), String(outside)).toBe("/executions");
  }
});

// Signing in at an identity provider, and what becomes of a code that is another's.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { equal } from "../stage.mjs";

const isOff = process.env.NOETL_TEST_SERVICES === "off";
const provider = isOff ? null : spawn(new URL("../../../scripts/services/oidc.sh", import.meta.url).pathname, { stdio: ["pipe", "pipe", "inherit"] });
const issuer = provider && (await once(createInterface({ input: provider.stdout }), "line"))[0];

export const environment = isOff
  ? {}
  : {
      NOETL_AUTH: "oidc",
      NOETL_OIDC_ISSUER: issuer,
      NOETL_OIDC_AUDIENCE: "noetl",
      NOETL_OIDC_CLIENT_ID: "page",
      NOETL_ENCRYPTION_KEY: randomBytes(32).toString("base64"),
    };

export default async function journey(stage) {
  if (isOff) {
    console.log("  skipped: NOETL_TEST_SERVICES=off, so no identity provider is started");
    return;
  }
  try {
    await signed(stage);
  } finally {
    // It ends with its input.
    provider.stdin.end();
  }
}

async function signed(stage) {
  const { server } = stage;
  const page = await stage.page();
  await page.goto(`${server.url}/operations/approvals?x=1`);
  const button = page.getByRole("button", { name: `Sign in at ${new URL(issuer).host}` });
  await button.waitFor();
  await stage.look(page, "sign-in-provider");
  await button.click();
  await page.getByText("Nothing waits for anybody").waitFor();
  equal(page.url(), `${server.url}/operations/approvals?x=1`, "where one was");
  await page.getByText("ada", { exact: true }).waitFor();

  // A code that was not asked for from this tab signs nobody in.
  const other = await stage.page();
  await other.goto(`${server.url}/sign-in?code=stolen&state=guessed`);
  await other.getByRole("alert").getByText("was not begun in this tab").waitFor();
  equal(new URL(other.url()).search, "", "a code in the address");
  equal(await other.evaluate(() => sessionStorage.getItem("noetl.token")), null, "a token");
  await other.goto(`${server.url}/sign-in?error=access_denied&error_description=no+entry`);
  await other.getByRole("alert").getByText("no entry").waitFor();
}

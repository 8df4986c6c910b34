// Whoever is not known is led to sign in, and back to where they were.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";

import { equal } from "../stage.mjs";

export const environment = {
  NOETL_AUTH: "token",
  NOETL_ENCRYPTION_KEY: randomBytes(32).toString("base64"),
};

export default async function journey(stage) {
  const { server } = stage;
  const file = /token\s+(\S+\.token)/.exec(server.said)?.[1];
  equal(typeof file, "string", "the file of the server's token");
  const token = readFileSync(isAbsolute(file) ? file : join(server.folder, file), "utf8").trim();

  // The link that the server prints signs one browser in, once.
  const link = /http\S+\/sign-in#code=\S+/.exec(server.said)?.[0];
  equal(typeof link, "string", "the link that the server prints");
  const linked = await stage.page();
  await linked.goto(link);
  await linked.getByRole("button", { name: "Sign out" }).waitFor();
  equal(linked.url().includes("code="), false, "the code in the address");
  const late = await linked.context().newPage();
  await late.goto(link);
  await late.getByRole("alert").getByText("the link was used or is too old").waitFor();

  const page = await stage.page();
  await page.goto(`${server.url}/catalog?text=hello`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await stage.look(page, "sign-in");
  await page.getByLabel("Token").fill("noetl_0000_wrong");
  await page.getByRole("button", { name: "Sign in with the token" }).click();
  await page.getByRole("alert").getByText("unknown, expired or revoked").waitFor();
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in with the token" }).click();
  await page.getByText("Nothing is registered yet").waitFor();
  equal(new URL(page.url()).pathname + new URL(page.url()).search, "/catalog?text=hello", "where one was");

  // It lives in this tab, and nowhere else.
  await page.reload();
  await page.getByText("Nothing is registered yet").waitFor();
  equal(await page.evaluate(() => JSON.stringify({ ...localStorage }).includes("noetl_")), false, "a token in lasting storage");
  equal((await page.context().cookies()).length, 0, "cookies");
  const other = await page.context().newPage();
  await other.goto(`${server.url}/operations`);
  await other.getByRole("heading", { name: "Sign in" }).waitFor();

  // A token that is ended meanwhile leads there again; what was written is still there afterwards.
  const headers = { authorization: `Bearer ${token}` };
  const made = await server.ask("/api/tokens", { name: "short", role: "author" }, headers);
  await other.getByLabel("Token").fill(made.token);
  await other.getByRole("button", { name: "Sign in with the token" }).click();
  await other.getByRole("heading", { name: "Operations" }).waitFor();
  await other.getByText(/^short/).waitFor();
  await other.getByRole("link", { name: "Catalog", exact: true }).click();
  await other.getByRole("link", { name: "New document" }).click();
  const text = other.getByRole("textbox", { name: "The document" });
  await text.fill("kind: Playbook\n# kept\n");
  await other.getByText(/error/).first().waitFor();
  await fetch(`${server.url}/api/tokens/${made.id}`, { method: "DELETE", headers });
  await other.getByRole("button", { name: "Register", exact: true }).click();
  await other.getByRole("heading", { name: "Sign in" }).waitFor();
  await other.getByLabel("Token").fill(token);
  await other.getByRole("button", { name: "Sign in with the token" }).click();
  await text.getByText("# kept").waitFor();

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  equal(await page.evaluate(() => sessionStorage.length), 0, "what is left of a session");

  // An address elsewhere is not followed.
  await page.goto(`${server.url}/sign-in?back=${encodeURIComponent("//example.org/")}`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in with the token" }).click();
  await page.waitForURL(`${server.url}/executions`);
}

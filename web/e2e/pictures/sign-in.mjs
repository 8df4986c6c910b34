// The page where people sign in.
import { randomBytes } from "node:crypto";

export const environment = { NOETL_AUTH: "token", NOETL_ENCRYPTION_KEY: randomBytes(32).toString("base64") };

export default async function pictures(stage) {
  const page = await stage.page();
  await page.goto(`${stage.server.url}/executions`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByLabel("Token").waitFor();
  await stage.picture(page, "sign-in");
}

// A result of twenty megabytes: it is loaded when it is asked for, and every digit of it can be found.
import { randomBytes } from "node:crypto";

import { LARGE } from "../playbooks.mjs";
import { equal } from "../stage.mjs";
import { held } from "./measure.mjs";

/** Only a worker in a process of its own returns so much at once. */
export const command = "server";
export const environment = {
  NOETL_DATABASE_URL: "sqlite://noetl.db",
  NOETL_ENCRYPTION_KEY: randomBytes(32).toString("base64"),
};

const ROWS = 290_000;
const LOADED_MS = 10_000;

export default async function journey(stage) {
  const { server } = stage;
  await server.register(LARGE);
  const worker = await server.worker();
  try {
    const id = await server.execute("web/large", { rows: ROWS });
    equal(await server.finished(id, 300_000), "COMPLETED", "the large one");
    const page = await stage.page();
    await page.goto(`${server.url}/executions/${id}?step=start`);
    const load = page.getByRole("button", { name: /Load the whole result, 2\d(\.\d)? MiB/ });
    await load.waitFor();
    const began = Date.now();
    await load.click();
    const whole = page.getByRole("group", { name: "the whole result" });
    await whole.getByText(`[${ROWS}]`).waitFor();
    held("loading a result of more than 20 MB", Date.now() - began, LOADED_MS);
    const last = String(9007199254740993n + BigInt(ROWS - 1));
    await page.getByRole("searchbox", { name: "Search in the whole result" }).fill(last);
    await whole.locator(".json-row.current", { hasText: last }).waitFor();
  } finally {
    await worker.stop();
  }
}

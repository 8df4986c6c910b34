// A hundred thousand executions (EXECUTIONS): the list is painted within a second, and stays quick to filter.
import { equal } from "../stage.mjs";
import { held, median, noteFirst } from "./measure.mjs";

const COUNT = Number(process.env.EXECUTIONS ?? 100_000);
/** Asked for at a time; more only wait for each other. */
const AT_ONCE = 48;
const FIRST_PAINT_MS = 1000;
const FILTERED_MS = 2000;

const TINY = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: tiny, path: web/tiny}
workflow:
  - step: only
    tool: {kind: noop, result: {done: true}}
`;

export default async function journey(stage) {
  const { server } = stage;
  await server.register(TINY);
  await fill(server);

  const page = await stage.page();
  await noteFirst(page, ".execution");
  const loads = [];
  for (let count = 0; count < 5; count += 1) {
    await page.goto(`${server.url}/executions`);
    await page.waitForFunction(() => window.shownAt);
    loads.push(await page.evaluate(() => window.shownAt));
  }
  held(`first paint of a list of ${COUNT} executions, the middle of five loads`, median(loads), FIRST_PAINT_MS);
  await page.locator(".counts button").first().getByText(String(COUNT)).waitFor();

  for (const query of ["status=failed", "status=completed&since=24h", "path=web%2Ftiny", "text=tiny"]) {
    const began = Date.now();
    await page.goto(`${server.url}/executions?${query}`);
    await page.locator(".execution, .empty").first().waitFor();
    held(`the list with ${query}`, Date.now() - began, FILTERED_MS);
  }
  await page.goto(`${server.url}/executions`);
  for (let count = 0; count < 3; count += 1) {
    await page.getByRole("button", { name: "Show older ones" }).click();
    await page.locator(`.executions[aria-rowcount="${(count + 2) * 100 + 1}"]`).waitFor();
  }
  equal((await page.locator(".execution").count()) < 100, true, "rows out of sight that are drawn");
}

async function fill(server) {
  const began = Date.now();
  let started = 0;
  const some = async () => {
    while (started < COUNT) {
      started += 1;
      const is = started;
      await server.execute("web/tiny");
      if (is % 20_000 === 0) console.log(`  ${is} executions after ${Math.round((Date.now() - began) / 1000)} s`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, some));
  for (;;) {
    const { stats } = await server.ask("/api/dashboard/stats");
    if (stats.running_executions === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

// A picture of each page, light and dark, of a shop's server that has been busy for a while.
import { IMPORT, ORDERS, RELEASE, REPORT, SYNC } from "../playbooks.mjs";

export default async function pictures(stage) {
  const { server } = stage;
  const page = await stage.page();
  await page.goto(`${server.url}/executions`);
  await page.getByText("Nothing ran yet").waitFor();
  await stage.picture(page, "empty");

  const worker = await server.worker("--name", "warehouse-1", "--slots", "8", "--label", "site=hall-3");
  try {
    const ran = await work(server);
    await executions(stage, page, ran);
    await catalog(stage, page);
    await operations(stage, page);
    await phone(stage, ran);
  } finally {
    await worker.stop();
  }
  await troubled(stage);
}

/** Some that went well, one that failed, some that run and one that asks. */
async function work(server) {
  for (const one of [IMPORT, RELEASE, REPORT, SYNC, ORDERS]) await server.register(one);
  await server.register(IMPORT.replace("islands]", "islands, overseas]").replace("max_in_flight: 3", "max_in_flight: 4"));
  for (let count = 0; count < 12; count += 1) await server.finished(await server.execute("shop/daily-report"));
  await server.finished(await server.execute("shop/import-orders", { strict: false }));
  const cancelled = await server.execute("shop/sync-stock");
  await server.ask(`/api/executions/${cancelled}/cancel`, { reason: "the warehouse is closed on Mondays" });
  const failed = await server.execute("shop/import-orders");
  await server.finished(failed);
  for (let count = 0; count < 6; count += 1) await server.finished(await server.execute("shop/daily-report"));
  const asking = await server.execute("shop/release-prices");
  const running = await server.execute("shop/sync-stock");
  return { failed, asking, running };
}

async function executions(stage, page, { failed, asking }) {
  const { url } = stage.server;
  await page.goto(`${url}/executions`);
  await page.locator(".execution").nth(6).waitFor();
  await stage.picture(page, "executions");

  const state = (name, is) => page.locator(`.react-flow__node[data-id="${name}"] .step.is-${is}`).first().waitFor();
  await page.goto(`${url}/executions/${failed}`);
  await state("quarantine", "failed");
  await stage.picture(page, "execution");
  await page.getByRole("button", { name: "Open step quarantine" }).click();
  await page.getByText("What the tool said").waitFor();
  await stage.picture(page, "step");

  const { events } = await stage.server.ask(`/api/executions/${failed}/events?ids=string`);
  const middle = events.filter((event) => event.event_type === "command.completed")[3].seq;
  await page.goto(`${url}/executions/${failed}?at=${middle}&vs=${events.length}`);
  await state("quarantine", "failed");
  await page.getByRole("row", { name: /step quarantine/ }).waitFor();
  await stage.picture(page, "time-travel");
  await page.goto(`${url}/executions/${failed}?at=${middle}`);
  await page.getByRole("button", { name: "Fork from here" }).click();
  await page.getByRole("dialog").getByRole("textbox").waitFor();
  await stage.picture(page, "fork");

  await page.goto(`${url}/executions/${asking}?step=ask`);
  await page.getByRole("region", { name: "Step ask" }).getByRole("button", { name: "Approve" }).waitFor();
  await page.getByText("What it waits for:").waitFor();
  await stage.picture(page, "approval");
}

async function catalog(stage, page) {
  const { url } = stage.server;
  const at = (path) => page.goto(url + path);
  await at("/catalog");
  await page.getByRole("link", { name: "shop/sync-stock", exact: true }).waitFor();
  await stage.picture(page, "catalog");
  await at("/catalog/shop/import-orders");
  await page.locator(".code").waitFor();
  await stage.picture(page, "document");
  await at("/catalog/shop/import-orders?tab=graph");
  await page.locator(".preview svg g").nth(3).waitFor();
  await stage.picture(page, "graph");
  await at("/catalog/shop/import-orders?tab=versions");
  await page.getByText("2 lines new, 2 gone").waitFor();
  await stage.picture(page, "versions");
  await at("/catalog/shop/import-orders?tab=runs");
  await page.locator("tbody .badge").first().waitFor();
  await stage.picture(page, "runs");
  await at("/catalog/shop/import-orders?run=yes");
  await page.getByRole("dialog").getByLabel("day").waitFor();
  await stage.picture(page, "run");
  await at("/editor?path=shop%2Fimport-orders");
  const text = page.getByRole("textbox", { name: "The document" });
  await text.waitFor();
  await page.getByText("Nothing is wrong with it.").waitFor();
  await text.fill(IMPORT.replace("{kind: noop, result: {day:", "{kind: nop, result: {day:").replace("step: check}", "step: chek}"));
  await page.getByRole("button", { name: /error 14:18/ }).click();
  await page.locator(".cm-lint-marker-error").nth(1).waitFor();
  await stage.picture(page, "editor");
}

async function operations(stage, page) {
  const { server } = stage;
  const schedule = (body) => server.ask("/api/schedules", body);
  await schedule({ playbook: "shop/daily-report", name: "every morning", cron: "30 7 * * mon-fri", timezone: "Europe/Berlin" });
  await schedule({ playbook: "shop/sync-stock", name: "stock", every: "15m" });
  await server.ask("/api/credentials", { name: "warehouse", type: "postgres", description: "where orders are loaded", data: { password: "-" } });
  await server.ask("/api/credentials", { name: "orders", type: "bearer", description: "what the web shop shows", data: { token: "-" } });
  const made = await server.ask("/api/subscriptions?ids=string", { path: "shop/orders" });
  await server.ask(`/api/subscriptions/${made.subscription_id}/activate?ids=string`, {});

  await page.goto(`${server.url}/operations`);
  await page.getByText(/ok, version/).waitFor();
  // The lines grow while something happens.
  for (let count = 0; count < 8; count += 1) {
    for (let some = 0; some < 4 + ((count * 5) % 7); some += 1) await server.finished(await server.execute("shop/daily-report"));
    await page.waitForResponse((answer) => answer.url().includes("/metrics"));
  }
  await stage.picture(page, "operations");
  const part = async (name, sign) => {
    await page.goto(`${server.url}/operations/${name}`);
    await page.getByText(sign).first().waitFor();
    await stage.picture(page, name);
  };
  await part("approvals", "Raise 1 284 prices by 4 %?");
  await part("workers", "warehouse-1");
  await page.goto(`${server.url}/operations/subscriptions`);
  await page.getByRole("button", { name: "Log of shop/orders" }).click();
  await page.getByRole("region", { name: "Log of shop/orders" }).getByRole("row").nth(2).waitFor();
  await stage.picture(page, "subscriptions");
  await part("schedules", "every morning");
  await part("credentials", "where orders are loaded");
}

async function phone(stage, { failed }) {
  const page = await stage.page({ viewport: { width: 390, height: 844 }, isMobile: true });
  await page.goto(`${stage.server.url}/executions`);
  await page.locator(".execution").nth(3).waitFor();
  await stage.picture(page, "phone");
  await page.goto(`${stage.server.url}/executions/${failed}`);
  await page.locator('.react-flow__node[data-id="quarantine"] .step.is-failed').waitFor();
  await stage.picture(page, "phone-execution");
}

async function troubled(stage) {
  const page = await stage.page();
  await page.route("**/api/**", (route) =>
    route.fulfill({ status: 500, contentType: "application/json", body: '{"message": "the disk is full", "code": "internal", "status": 500}' }),
  );
  await page.goto(`${stage.server.url}/executions`);
  await page.getByRole("alert").getByText("the disk is full").waitFor();
  await stage.picture(page, "error");
}

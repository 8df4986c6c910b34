// Health, workers, subscriptions, schedules, credentials; and every part of it while the API fails.
import { BUSY, BUSY_ORDERS, HOSTILE } from "../playbooks.mjs";
import { equal, fits } from "../stage.mjs";

const SECRET = "correct horse battery staple";

export default async function journey(stage) {
  const { server } = stage;
  await server.register(BUSY);
  const id = await server.execute("web/busy");
  const page = await stage.page();
  await page.goto(`${server.url}/operations`);
  await page.locator(".spark polyline").first().waitFor({ state: "attached" });
  await page.getByText(/ok, version/).waitFor();
  await stage.look(page, "operations");

  const part = (name) => page.getByRole("navigation", { name: "Parts of operations" }).getByRole("link", { name });
  await part("Workers").click();
  await page.getByRole("row", { name: /local at work 1/ }).waitFor();
  await stage.look(page, "workers");
  await server.ask(`/api/executions/${id}/cancel`, {});

  await part("Subscriptions").click();
  await page.getByText("There is no subscription").waitFor();
  await subscriptions(stage, page);
  await part("Schedules").click();
  await schedules(stage, page, part);
  await part("Credentials").click();
  await credentials(stage, page);
  await failing(stage);
  equal(await page.evaluate(() => window.hacked), undefined, "script text that ran");
}

async function subscriptions(stage, page) {
  await stage.server.register(BUSY_ORDERS);
  await page.reload();
  await page.getByRole("button", { name: "Register", exact: true }).click();
  const row = page.getByRole("row", { name: /web\/orders/ });
  await row.getByText("registered", { exact: true }).waitFor();
  await row.getByRole("button", { name: "activate web/orders", exact: true }).click();
  await row.getByText("active", { exact: true }).waitFor();
  await row.getByRole("button", { name: "pause web/orders", exact: true }).click();
  await row.getByText("paused", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Log of web/orders" }).click();
  const log = page.getByRole("region", { name: "Log of web/orders" });
  await log.getByRole("row").nth(3).waitFor();
  await stage.look(page, "subscriptions");
  await row.getByRole("button", { name: "deactivate web/orders", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Deactivate" }).click();
  await row.getByText("deactivated", { exact: true }).waitFor();
}

async function schedules(stage, page, part) {
  await page.getByText("Nothing is started by the clock").waitFor();
  await page.getByRole("button", { name: "New schedule" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Playbook").fill("web/busy");
  await dialog.getByLabel(/As 30 7/).fill("61 * * * *");
  await dialog.getByRole("button", { name: "Make it" }).click();
  await dialog.getByRole("alert").getByText("It was not made").waitFor();
  await dialog.getByLabel(/As 30 7/).fill("30 7 * * mon-fri");
  await dialog.getByLabel(/Payload/).fill('{"seconds": 0');
  equal(await dialog.getByRole("button", { name: "Make it" }).isDisabled(), true, "a payload that is no JSON");
  await dialog.getByLabel(/Payload/).fill('{"seconds": 0}');
  await dialog.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("button", { name: "Pause web/busy" }).click();
  await page.getByText("paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Resume web/busy" }).click();
  await page.getByRole("button", { name: "Pause web/busy" }).waitFor();
  await page.getByRole("button", { name: "New schedule" }).click();
  await dialog.getByLabel("Playbook").fill("web/busy");
  await dialog.getByLabel("When").selectOption("every");
  await dialog.getByLabel(/As 15m/).fill("15m");
  await dialog.getByRole("button", { name: "Make it" }).click();
  const every = page.getByRole("row", { name: /every 15 min/ });
  await every.waitFor();
  await stage.look(page, "schedules");
  await every.getByRole("button", { name: "Delete web/busy" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await every.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Run now: web/busy" }).click();
  await page.waitForURL(/\/executions\/\d+/);
  const id = new URL(page.url()).pathname.split("/").at(-1);
  equal(await stage.server.finished(id), "COMPLETED", "what the schedule ran");
  await page.getByRole("link", { name: "Operations", exact: true }).click();
  await part("Schedules").click();
  await page.getByRole("button", { name: "Delete web/busy" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("Nothing is started by the clock").waitFor();
}

/** What is secret goes to the server and never comes back. */
async function credentials(stage, page) {
  await page.getByText("No credential is kept").waitFor();
  let shown = "";
  page.on("response", async (answer) => {
    if (answer.url().includes("/api/credentials")) shown += await answer.text().catch(() => "");
  });
  await page.getByRole("button", { name: "Keep a credential" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("web-db");
  await dialog.getByLabel("Type").fill("postgres");
  await dialog.getByLabel("What it is for").fill(HOSTILE);
  await dialog.getByLabel(/What it holds/).fill("secret");
  await dialog.getByText("A payload is an object in JSON").waitFor();
  await dialog.getByLabel(/What it holds/).fill(JSON.stringify({ password: SECRET }));
  await dialog.getByRole("button", { name: "Keep it" }).click();
  const row = page.getByRole("row", { name: /web-db/ });
  await row.getByText(HOSTILE).waitFor();
  equal((await page.content()).includes(SECRET), false, "the secret on the page");
  equal(shown.includes("web-db") && !shown.includes(SECRET), true, "the secret in an answer");
  await stage.look(page, "credentials");
  await row.getByRole("button", { name: "Remove web-db" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("No credential is kept").waitFor();
}

const PAGES = [
  "/catalog",
  "/catalog/web/busy",
  "/editor?path=web%2Fbusy",
  "/operations",
  "/operations/approvals",
  "/operations/workers",
  "/operations/subscriptions",
  "/operations/schedules",
  "/operations/credentials",
];

/** Whatever the API answers, a page says so and what to do; on a phone, too. */
async function failing(stage) {
  const page = await stage.page({ viewport: { width: 390, height: 800 }, isMobile: true });
  const answers = [
    { status: 500, contentType: "application/json", body: JSON.stringify({ code: "internal", message: HOSTILE }) },
    { status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" },
    { status: 200, contentType: "application/json", body: "{not json" },
  ];
  for (const answer of answers) {
    await page.route(/\/(api|metrics)/, (route) => (route.request().url().includes("/api/health") ? route.continue() : route.fulfill(answer)));
    for (const path of PAGES) {
      await page.goto(stage.server.url + path);
      // Measurements that are no JSON are no failure: the text of them is read line by line.
      if (path === "/operations" && answer.status === 200) continue;
      const said = page.getByRole("alert").first();
      await said.waitFor();
      equal((await said.innerText()).length > 40, true, `${path}: what to do`);
      await fits(page, path);
    }
    await page.unroute(/\/(api|metrics)/);
    await page.getByRole("button", { name: "Try again" }).first().click();
    await page.getByRole("alert").first().waitFor({ state: "detached" });
  }
  equal(await page.evaluate(() => window.hacked), undefined, "script text that ran");
}

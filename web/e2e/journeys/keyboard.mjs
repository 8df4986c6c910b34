// Everything can be reached and done without a mouse, on every page, and nothing sticks out on a phone.
import { PATIENT } from "../playbooks.mjs";
import { equal, fits } from "../stage.mjs";

const SUBSCRIPTION = `apiVersion: noetl.io/v1
kind: Subscription
metadata: {name: mail, path: web/mail}
spec:
  source: webhook
  mode: push
  ingress: {gateway_path: /ingress/mail, verify: {type: bearer, secret: mail}}
  dispatch: {playbook: web/patient}
`;

export default async function journey(stage) {
  const { server } = stage;
  await server.register(PATIENT);
  await server.register(SUBSCRIPTION);
  await server.ask("/api/schedules", { playbook: "web/patient", cron: "30 7 * * mon-fri" });
  await server.ask("/api/subscriptions", { path: "web/mail" });
  const id = await server.execute("web/patient");
  const pages = {
    "/executions": "Choose all that run",
    [`/executions/${id}?step=start`]: "Close the step",
    "/catalog": "New document",
    "/catalog/web/patient": "Run",
    "/catalog/web/patient?tab=versions": "Edit from here: version 1",
    "/catalog/web/patient?tab=graph": "The graph of the playbook",
    "/catalog/web/patient?tab=runs": "Runs of every version",
    "/editor?path=web%2Fpatient": "The document",
    "/operations": "Credentials",
    "/operations/approvals": "Approvals",
    "/operations/workers": "Workers",
    "/operations/subscriptions": "Log of web/mail",
    "/operations/schedules": "Pause web/patient",
    "/operations/credentials": "Keep a credential",
  };
  const page = await stage.page();
  const phone = await stage.page({ viewport: { width: 390, height: 800 }, isMobile: true });
  for (const [path, wanted] of Object.entries(pages)) {
    await page.goto(server.url + path);
    await reached(page, path, wanted);
    await phone.goto(server.url + path);
    await phone.getByRole("main").getByText(/\S/).first().waitFor();
    await phone.waitForFunction(() => !document.querySelector(".loading"));
    await fits(phone, path);
  }
  await byKeys(stage, page, id);
}

/** Goes through the page with Tab until what is wanted had the focus, and a sign of it that can be seen. */
async function reached(page, path, wanted) {
  const target = page.getByLabel(wanted, { exact: true }).or(page.getByRole("link", { name: wanted, exact: true })).or(page.getByRole("button", { name: wanted, exact: true })).first();
  await target.waitFor();
  await target.evaluate((element) => {
    element.addEventListener("focus", () => {
      // The editor draws a line around its whole text, a moment later.
      const shows = element.closest(".cm-editor") || getComputedStyle(element).outlineStyle !== "none";
      window.reached = shows ? "and shows it" : "and does not show it";
    });
  });
  for (let count = 0; count < 12; count += 1) {
    for (let some = 0; some < 10; some += 1) await page.keyboard.press("Tab");
    const found = await page.evaluate(() => window.reached);
    if (!found) continue;
    equal(found, "and shows it", `${path}: ${wanted} has the focus`);
    return;
  }
  throw new Error(`${path}: ${wanted} cannot be reached with Tab`);
}

/** An execution is opened, a step of its graph chosen, closed and cancelled, with keys alone. */
async function byKeys(stage, page, id) {
  await page.goto(`${stage.server.url}/executions/${id}`);
  const node = page.locator('.react-flow__node[data-id="start"]');
  await node.waitFor();
  await node.focus();
  await page.keyboard.press("Enter");
  const close = page.getByRole("button", { name: "Close the step" });
  await close.waitFor();
  await close.press("Enter");
  await close.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Cancel", exact: true }).press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Cancel", exact: true }).press("Enter");
  await dialog.getByRole("button", { name: "Cancel it" }).press("Enter");
  await page.locator("h1 + .badge", { hasText: "cancelled" }).waitFor();

  // Light and dark can be chosen, whatever the machine prefers, and stay so.
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  equal(await theme(), "light", "what the machine prefers");
  await page.getByRole("button", { name: "Turn to dark" }).press("Enter");
  await page.reload();
  await page.getByRole("button", { name: "Turn to light" }).waitFor();
  equal(await theme(), "dark", "what was chosen");
}

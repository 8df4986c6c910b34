// Every call of every page fails once, alone: the page says so, what to do, and stays usable.
import { ASKING, PATIENT } from "../playbooks.mjs";

/** Calls that a page does well without: nobody misses who they are while they are nobody, nor a count in passing. */
const QUIET = ["/api/health", "/api/whoami", "/api/status", "/api/pool/status"];
/** Pages that are tried at the same time. */
const AT_ONCE = 6;

export default async function journey(stage) {
  const { server } = stage;
  await server.register(PATIENT);
  await server.register(ASKING);
  const id = await server.execute("web/patient");
  const asking = await server.execute("web/asking");
  const pages = [
    "/executions",
    `/executions/${id}?step=start&tab=logs&view=logs`,
    `/executions/${asking}?step=start&view=children`,
    "/catalog",
    "/catalog/web/patient?tab=versions",
    "/catalog/web/patient?tab=runs",
    "/catalog/web/patient?run=yes",
    "/editor?path=web%2Fpatient",
    "/operations",
    "/operations/approvals",
    "/operations/workers",
    "/operations/subscriptions",
    "/operations/schedules",
    "/operations/credentials",
  ];
  const tries = (await Promise.all(pages.map((path) => calls(stage, path)))).flat();
  const next = async () => {
    for (let one = tries.shift(); one; one = tries.shift()) await failing(stage, one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
}

/** The calls that a page makes, each once. */
async function calls(stage, path) {
  const page = await stage.page();
  const made = new Set();
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (/^\/(api|metrics)(\/|$)/.test(pathname)) made.add(pathname);
  });
  await page.goto(stage.server.url + path);
  await page.waitForFunction(() => !document.querySelector(".loading") && document.querySelector("main")?.innerText.length > 20);
  await page.context().close();
  return [...made].filter((call) => !QUIET.includes(call)).map((call) => ({ path, call }));
}

async function failing(stage, { path, call }) {
  // The number of approvals beside their name is a service, not a promise.
  if (call.endsWith("/approvals") && !path.endsWith("/approvals")) return;
  // The list comes by its stream, too.
  if (call === "/api/executions" && path === "/executions") return;
  const page = await stage.page();
  await page.route(
    (address) => address.pathname === call,
    (route) => route.fulfill({ status: 500, contentType: "application/json", body: '{"message": "the disk is full", "code": "internal"}' }),
  );
  await page.goto(stage.server.url + path);
  const said = page.getByRole("alert").or(page.getByRole("status")).filter({ hasText: /the disk is full|connection lost, coming again/ }).first();
  await said.waitFor().catch(() => {
    throw new Error(`${path} does not say that ${call} failed`);
  });
  // What surrounds it is still there.
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Catalog" }).waitFor();
  if (page.complaints.length > 0) throw new Error(`${path} complained while ${call} failed: ${page.complaints.join("; ")}`);
  await page.context().close();
}

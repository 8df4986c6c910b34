// The server restarts while pages are open; every call fails; results are large.
import { equal } from "../stage.mjs";
import { ASKING, LARGE, PATIENT } from "../playbooks.mjs";

export default async function journey(stage) {
  const { server } = stage;
  await server.register(PATIENT);
  await server.register(LARGE);
  await server.register(ASKING);
  await restart(stage);
  await errors(stage);
  await large(stage);
}

/** Pages reconnect and catch up, where they were; a person answers after it. */
async function restart(stage) {
  const { server } = stage;
  const id = await server.execute("web/asking");
  const page = await stage.page();
  await page.goto(`${server.url}/executions/${id}?step=start&view=context`);
  await page.locator('.react-flow__node[data-id="start"] .step.is-waiting').waitFor();
  const list = await stage.page();
  await list.goto(`${server.url}/executions`);
  await list.locator(".execution", { hasText: id }).getByText("running").waitFor();
  await server.stop();
  await page.getByText("connection lost, coming again").waitFor();
  await list.getByText(/not live/).waitFor();
  await server.start();
  await list.getByText("live", { exact: true }).waitFor();
  await page.getByRole("status").getByText("live", { exact: true }).waitFor();
  equal(new URL(page.url()).search, "?step=start&view=context", "the place it was at");
  const panel = page.getByRole("region", { name: "Step start" });
  await panel.getByText("Release version 2?").first().waitFor();
  await stage.look(page, "approval");
  await panel.getByLabel("Note").fill("fine by me");
  await panel.getByRole("button", { name: "Approve" }).click();
  await page.locator('.react-flow__node[data-id="release"] .step.is-completed').waitFor();
  equal(await page.locator('.react-flow__node[data-id="keep"] .step.is-none').count(), 1, "the way that was not taken");
  await list.locator(".execution", { hasText: id }).getByText("completed").waitFor();
}

/** Every page says what is wrong, what to do, and tries again when asked to. */
async function errors(stage) {
  const { server } = stage;
  const id = await server.execute("web/patient");
  const page = await stage.page();
  for (const path of ["/executions", `/executions/${id}`, "/catalog", "/operations"]) {
    await page.route("**/api/**", (route) =>
      route.fulfill({ status: 500, contentType: "application/json", body: '{"message": "the disk is full", "code": "internal", "status": 500}' }),
    );
    await page.goto(server.url + path);
    const alert = page.getByRole("alert").first();
    await alert.getByText("the disk is full").waitFor();
    await alert.getByText("try again").first().waitFor();
    if (path === "/executions") await stage.look(page, "error");
    await page.unroute("**/api/**");
    await alert.getByRole("button", { name: "Try again" }).click();
    await alert.waitFor({ state: "detached" });
  }
  await page.goto(`${server.url}/executions/7`);
  await page.getByText("Execution not found").waitFor();
  await page.goto(`${server.url}/nowhere`);
  await page.getByText("There is no such page").waitFor();
}

/** A large result is loaded when it is asked for, and no digit of it is lost. */
async function large(stage) {
  const { server } = stage;
  const id = await server.execute("web/large");
  equal(await server.finished(id), "COMPLETED", "the large one");
  const page = await stage.page();
  await page.goto(`${server.url}/executions/${id}?step=start`);
  await page.getByRole("button", { name: /Load the whole result, 1\.\d MiB/ }).click();
  const whole = page.getByRole("group", { name: "the whole result" });
  await whole.getByText("[25000]").click();
  await page.getByRole("searchbox", { name: "Search in the whole result" }).fill("9007199254765992");
  await whole.locator(".json-row.current", { hasText: "9007199254765992" }).waitFor();
}

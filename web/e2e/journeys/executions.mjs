// Run, watch it live, open the failed step, move the slider, fork, cancel.
import { equal } from "../stage.mjs";
import { HOSTILE, LIVELY, PATIENT } from "../playbooks.mjs";

export default async function journey(stage) {
  const { server } = stage;
  const page = await stage.page();
  await page.goto(`${server.url}/`);
  await page.getByText("Nothing ran yet").waitFor();
  await stage.look(page, "empty");

  await server.register(LIVELY);
  await server.register(PATIENT);
  const id = await server.execute("web/lively");

  // It comes into the list by itself, and is opened while it runs.
  const row = page.locator(".execution", { hasText: id });
  await row.getByText("running").waitFor();
  await row.getByRole("link", { name: "web/lively" }).click();
  const step = (name, state) => page.locator(`.react-flow__node[data-id="${name}"] .step.is-${state}`);
  await step("pause", "waiting").waitFor();
  await page.getByText("What it waits for:").waitFor();
  await step("fetch", "completed").waitFor();
  equal(await step("boom", "none").count(), 1, "the step that comes last while another waits");

  // It fails before our eyes, and says why.
  await server.answer(id);
  await step("boom", "failed").waitFor();
  equal(await step("fine", "none").count(), 1, "the way that was not taken");
  // Arcs are drawn once the end has come, which may be a moment after the step that failed.
  await page.locator(".arc.not-taken").first().waitFor({ state: "attached" });
  equal(await page.locator(".arc.not-taken").count(), 1, "arcs not taken");
  equal(await page.locator(".arc.taken").count(), 3, "arcs taken");
  await page.getByRole("button", { name: "Open step boom" }).click();
  const panel = page.getByRole("region", { name: "Step boom" });
  await panel.getByText("What the tool said").waitFor();
  equal((await panel.locator(".code").first().innerText()).includes("raise ValueError"), true, "the line that failed");
  await panel.getByRole("tab", { name: "Logs" }).click();
  await panel.getByText("about to fail").waitFor();
  await panel.getByRole("tab", { name: "Input" }).click();
  await panel.getByText("Rendered input").waitFor();
  await panel.getByRole("tab", { name: "Error" }).click();
  await page.locator(".timeline[data-bars='9']").waitFor();
  await stage.look(page, "execution");

  await hostile(stage);
  await travel(stage, page, id);
  await fork(stage, page, id);
  await cancel(stage, page);
}

/** Text that would do something is text, in every part of the page; what failed is tried again. */
async function hostile(stage) {
  const { server } = stage;
  const id = await server.execute("web/lively", { text: HOSTILE });
  await server.answer(id);
  equal(await server.finished(id), "FAILED", "the hostile one");
  const page = await stage.page();
  await page.goto(`${server.url}/executions/${id}?step=boom`);
  const panel = page.getByRole("region", { name: "Step boom" });
  await panel.getByText("What the tool said").waitFor();
  equal((await panel.innerText()).includes(HOSTILE), true, "script text is shown as text");
  await panel.getByRole("tab", { name: "Input" }).click();
  await panel.getByText("Rendered input").waitFor();
  for (const tab of ["Context", "Logs", "Children", "Events"]) {
    await page.getByRole("region", { name: "More about the execution" }).getByRole("tab", { name: tab }).click();
  }
  await page.getByRole("button", { name: "Compare from here" }).click();
  await page.getByRole("slider", { name: "Moment of the log" }).fill("3");
  await page.getByRole("region", { name: "Two moments compared" }).getByText("ctx.found").waitFor();
  const list = await stage.page();
  await list.goto(`${server.url}/executions?text=onerror`);
  await list.locator(".execution", { hasText: HOSTILE }).waitFor();
  for (const one of [page, list]) equal(await one.evaluate(() => window.hacked), undefined, "script text that ran");

  await page.goto(`${server.url}/executions/${id}`);
  await page.getByRole("button", { name: "Retry what failed" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retry", exact: true }).click();
  await page.waitForURL((address) => !address.pathname.includes(id));
  await page.locator('.react-flow__node[data-id="boom"] .step.is-failed').waitFor();
  await page.getByRole("link", { name: `forked from ${id}` }).waitFor();
}

/** The slider moves the whole page, and its place is in the address. */
async function travel(stage, page, id) {
  const { server } = stage;
  const step = (name, state) => page.locator(`.react-flow__node[data-id="${name}"] .step.is-${state}`);
  await page.goto(`${server.url}/executions/${id}`);
  await step("boom", "failed").waitFor();
  const slider = page.getByRole("slider", { name: "Moment of the log" });
  const { events } = await server.ask(`/api/executions/${id}/events?ids=string`);
  const parked = events.find((event) => event.event_type === "command.parked");
  await slider.fill(String(parked.seq));
  await step("pause", "waiting").waitFor();
  await step("boom", "none").waitFor();
  const inAddress = (seq) => page.waitForURL((address) => address.searchParams.get("at") === String(seq));
  await inAddress(parked.seq);
  await slider.press("ArrowLeft");
  await page.getByTestId("moment").getByText(String(parked.seq - 1), { exact: true }).waitFor();
  await page.getByRole("list", { name: "Pieces of work at this moment" }).click();
  await page.keyboard.press(".");
  await page.getByTestId("moment").getByText(String(parked.seq), { exact: true }).waitFor();

  // Whoever gets the link sees the same.
  await inAddress(parked.seq);
  const other = await stage.page();
  await other.goto(page.url());
  await other.locator('.react-flow__node[data-id="pause"] .step.is-waiting').waitFor();
  await other.getByRole("tab", { name: "Context" }).click();
  await other.getByText("ctx.found").waitFor();

  // Two moments side by side.
  await page.getByRole("button", { name: "Compare from here" }).click();
  await slider.fill(String(events.length));
  const compared = page.getByRole("region", { name: "Two moments compared" });
  await compared.getByRole("row", { name: /step boom/ }).getByText("failed").waitFor();
  await stage.look(page, "time-travel");
  await page.getByRole("button", { name: /Comparing with event/ }).click();

  // It plays from the beginning to the end.
  await slider.fill("0");
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await page.getByTestId("moment").getByText(String(events.length), { exact: true }).waitFor();
  await page.getByRole("button", { name: "Play", exact: true }).waitFor();
}

/** Another execution begins in the past of this one, with another payload. */
async function fork(stage, page, id) {
  const { server } = stage;
  const { events } = await server.ask(`/api/executions/${id}/events?ids=string`);
  const exit = events.find((event) => event.event_type === "step.exit" && event.node_name === "fetch");
  await page.goto(`${server.url}/executions/${id}?at=${exit.seq}`);
  await page.getByRole("button", { name: "Fork from here" }).click();
  const dialog = page.getByRole("dialog");
  const payload = dialog.getByRole("textbox");
  await payload.fill("{nonsense");
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await dialog.getByText("The payload is not JSON").waitFor();
  await stage.look(page, "fork");
  await payload.fill('{"works": true}');
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await page.waitForURL((address) => !address.pathname.includes(id));
  await server.answer(new URL(page.url()).pathname.split("/").at(-1));
  await page.locator('.react-flow__node[data-id="fine"] .step.is-completed').waitFor();
  await page.getByRole("link", { name: `forked from ${id}` }).waitFor();
}

/** One is cancelled on its page, others from the list. */
async function cancel(stage, page) {
  const { server } = stage;
  const one = await server.execute("web/patient");
  await page.goto(`${server.url}/executions/${one}`);
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Why").fill("seen enough");
  await dialog.getByRole("button", { name: "Cancel it" }).click();
  await page.locator("h1 + .badge", { hasText: "cancelled" }).waitFor();
  await page.getByText("it was cancelled: seen enough").waitFor();

  const more = [await server.execute("web/patient"), await server.execute("web/patient")];
  await page.goto(`${server.url}/executions?status=running&path=patient`);
  for (const id of more) await page.getByLabel(`Choose ${id}`).check();
  await page.getByRole("button", { name: "Cancel them" }).click();
  await page.getByRole("button", { name: "Yes, cancel 2" }).click();
  await page.getByText("No execution is like that").waitFor();
  for (const id of more) equal(await server.finished(id), "CANCELLED", "a chosen execution");

  await page.getByRole("searchbox", { name: "Path", exact: true }).fill("");
  await page.getByRole("button", { name: /failed/ }).first().click();
  await page.locator(".execution", { hasText: "boom" }).first().waitFor();
  equal(new URL(page.url()).searchParams.get("status"), "failed", "the filter in the address");
  await page.getByRole("button", { name: "Show all" }).click();
  await page.locator(".execution").nth(3).waitFor();
  await stage.look(page, "executions");

  const phone = await stage.page({ viewport: { width: 390, height: 800 }, isMobile: true });
  await phone.goto(`${server.url}/executions`);
  await phone.locator(".execution").first().waitFor();
  equal(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "the page fits a phone");
  await stage.look(phone, "phone");
}

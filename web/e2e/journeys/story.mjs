// The whole way of somebody who is new: write a playbook with a mistake and mend it, run it, watch it, open what
// failed, go back in time, fork from there, approve, and cancel. No page is gone to by its address but the first.
import { PARCELS } from "../playbooks.mjs";
import { equal } from "../stage.mjs";

export default async function journey(stage) {
  const page = await stage.page();
  const step = (name, state) => page.locator(`.react-flow__node[data-id="${name}"] .step.is-${state}`);
  await page.goto(stage.server.url);

  // Written with a mistake, which is shown at its line; mended; registered.
  await page.getByRole("link", { name: "catalog", exact: true }).click();
  await page.getByRole("link", { name: "Write the first one here" }).click();
  const text = page.getByRole("textbox", { name: "The document" });
  await text.fill(PARCELS);
  await page.getByRole("button", { name: /error .* unknown tool kind 'shel'/ }).waitFor();
  await text.fill(PARCELS.replace("kind: shel,", "kind: shell,"));
  await page.getByText("Nothing is wrong with it.").waitFor();
  await page.getByRole("button", { name: "Register", exact: true }).click();
  await page.getByText("Registered as version 1 of").waitFor();

  // Run, and watched until it fails.
  await page.getByRole("link", { name: "Run it" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL(/\/executions\/\d+/);
  const first = new URL(page.url()).pathname;
  await step("pack", "completed").waitFor();
  await step("weigh", "failed").waitFor();

  // The failed step says why.
  await page.getByRole("button", { name: "Open step weigh" }).click();
  const panel = page.getByRole("region", { name: "Step weigh" });
  await panel.getByText("nobody to send it to").first().waitFor();
  await panel.getByRole("button", { name: "Close the step" }).click();

  // Back to where its first step was done, and from there again with an address.
  const slider = page.getByRole("slider", { name: "Moment of the log" });
  const { events } = await stage.server.ask(`/api${first}/events?ids=string`);
  const packed = events.find((event) => event.event_type === "step.exit" && event.node_name === "pack");
  await slider.fill(String(packed.seq));
  await step("weigh", "none").waitFor();
  await page.getByRole("button", { name: "Fork from here" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").fill('{"address": "Mill Lane 3"}');
  await dialog.getByRole("button", { name: "Fork", exact: true }).click();
  await page.waitForURL((address) => address.pathname !== first);

  // It asks; it is told yes; and stopped all the same.
  await step("ask", "waiting").click();
  const asked = page.getByRole("region", { name: "Step ask" });
  await asked.getByText("Send it to Mill Lane 3?").first().waitFor();
  await asked.getByRole("button", { name: "Approve" }).click();
  await step("send", "waiting").waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
  await page.locator("h1 + .badge", { hasText: "cancelled" }).waitFor();
  equal(await step("pack", "completed").count(), 1, "what was done before it was cancelled");
}

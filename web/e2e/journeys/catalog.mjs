// Write a playbook with a mistake, mend it, register it, run it, approve what it asks; then change it, compare,
// look at it, delete and restore it.
import { HOSTILE } from "../playbooks.mjs";
import { equal, fits } from "../stage.mjs";

const ASKING = `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: asking
  path: web/asking
  description: '${HOSTILE}'
workload:
  what: cake
  count: 3
workflow:
  - step: ask
    tool:
      kind: aproval
      message: 'Eat {{ workload.count }} of {{ workload.what }}? ${HOSTILE}'
      data: {what: "{{ workload.what }}"}
      timeout: 1h
    next:
      arcs:
        - {step: eat, when: "{{ output.approved }}"}
        - {step: end}
  - step: eat
    tool: {kind: noop, result: {eaten: "{{ workload.count }}"}}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: {note: "{{ ask.note }}"}}
`;

export default async function journey(stage) {
  const { server } = stage;
  const page = await stage.page();
  await page.goto(`${server.url}/catalog`);
  await page.getByText("Nothing is registered yet").waitFor();
  await stage.look(page, "catalog-empty");

  await write(stage, page);
  const id = await run(stage, page);
  await approve(stage, page, id);
  await compare(stage, page, id);
  await remove(stage, page);

  const phone = await stage.page({ viewport: { width: 390, height: 800 }, isMobile: true });
  for (const path of ["/catalog", "/catalog/web/asking", "/catalog/web/asking?tab=versions", "/editor?path=web%2Fasking"]) {
    await phone.goto(server.url + path);
    await phone.locator("table, pre, .cm-content").first().waitFor();
    await fits(phone, path);
  }
  equal(await page.evaluate(() => window.hacked), undefined, "script text that ran");
}

/** The mistake is shown while one types, at its line, and when one registers all the same. */
async function write(stage, page) {
  await page.getByRole("link", { name: "Write the first one here" }).click();
  const text = page.getByRole("textbox", { name: "The document" });
  await text.waitFor();
  await page.getByText("Nothing is wrong with it.").waitFor();
  await text.fill(ASKING);
  const finding = page.getByRole("button", { name: /error 13:13 unknown tool kind 'aproval'/ });
  await finding.waitFor();
  await page.locator(".cm-lint-marker-error").waitFor();
  await stage.look(page, "editor");
  await page.getByRole("button", { name: "Register", exact: true }).click();
  await page.getByText("It was not registered:").waitFor();
  equal((await stage.server.ask("/api/catalog/list", {})).entries.length, 0, "documents after a refusal");

  // What is written outlives the page.
  await page.reload();
  await finding.click();
  await page.keyboard.press("Shift+End");
  await page.keyboard.type("appr");
  await page.locator(".cm-tooltip-autocomplete li[aria-selected]", { hasText: "approval" }).waitFor();
  // The list takes no key in its first moment, lest it surprise who types on.
  await page.waitForTimeout(150);
  await page.keyboard.press("Enter");
  await page.getByText("Nothing is wrong with it.").waitFor();
  await page.keyboard.press("Control+s");
  await page.getByText("Registered as version 1 of").waitFor();
}

/** The dialog has a field for each key of the workload, and says what is wrong with one. */
async function run(stage, page) {
  await page.getByRole("link", { name: "Run it" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("what", { exact: true }).fill("bread");
  await dialog.getByLabel("count", { exact: true }).fill("five");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await dialog.getByText("Write a whole number.").waitFor();
  await stage.look(page, "run");
  await dialog.getByLabel("count", { exact: true }).fill("9007199254740993");
  await dialog.getByRole("button", { name: "Write JSON instead" }).click();
  const json = await dialog.getByRole("textbox").inputValue();
  equal(json.includes('"count": 9007199254740993'), true, `every digit in ${json}`);
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL(/\/executions\/\d+/);
  return new URL(page.url()).pathname.split("/").at(-1);
}

async function approve(stage, page, id) {
  await page.getByRole("link", { name: "Operations", exact: true }).click();
  await page.getByRole("link", { name: /Approvals/ }).click();
  const asked = page.getByRole("article");
  await asked.getByRole("heading", { name: "Eat 9007199254740993 of bread?" }).waitFor();
  equal((await asked.innerText()).includes(HOSTILE), true, "script text is shown as text");
  await stage.look(page, "approvals");
  await asked.getByLabel(/Note/).fill("enjoy");
  await asked.getByRole("button", { name: "Approve", exact: true }).click();
  await page.getByText("Approved: step ask of web/asking continues.").waitFor();
  await page.getByText("Nothing waits for anybody").waitFor();
  equal(await stage.server.finished(id), "COMPLETED", "the execution that was approved");
  const { result } = await stage.server.ask(`/api/executions/${id}?ids=string`);
  equal(JSON.stringify(result).includes("enjoy"), true, `the note in ${JSON.stringify(result)}`);
}

async function compare(stage, page, id) {
  await page.goto(`${stage.server.url}/catalog?text=asking`);
  await page.getByRole("link", { name: "web/asking", exact: true }).click();
  await page.locator(".description", { hasText: HOSTILE }).waitFor();
  await stage.look(page, "document");
  await page.getByRole("link", { name: "Edit", exact: true }).click();
  const text = page.getByRole("textbox", { name: "The document" });
  await text.waitFor();
  await text.fill(ASKING.replace("aproval", "approval").replace("what: cake", "what: pie"));
  await page.getByText("Nothing is wrong with it.").waitFor();
  await page.getByRole("button", { name: "Register", exact: true }).click();
  await page.getByText("Registered as version 2 of").getByRole("link", { name: "web/asking" }).click();

  const parts = page.getByRole("navigation", { name: "Parts of the document" });
  await parts.getByRole("link", { name: "Versions" }).click();
  await page.getByText("1 lines new, 1 gone").waitFor();
  equal(await page.locator(".diff-line.gone code").innerText(), "  what: cake", "the line that went");
  equal(await page.locator(".diff-line.new code").innerText(), "  what: pie", "the line that came");
  await stage.look(page, "versions");
  await parts.getByRole("link", { name: "Graph" }).click();
  await page.locator(".preview svg g").nth(2).waitFor();
  equal(await page.locator(".preview .way").count(), 3, "ways between steps");
  await stage.look(page, "graph");
  await parts.getByRole("link", { name: "Runs" }).click();
  await page.getByText("Version 2 has not run yet").waitFor();
  await page.goto(`${stage.server.url}/catalog/web/asking?version=1&tab=runs`);
  await page.getByRole("link", { name: id }).waitFor();
  await stage.look(page, "runs");
}

async function remove(stage, page) {
  await page.goto(`${stage.server.url}/catalog/web/asking`);
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete version 2" }).click();
  await page.getByText("2 (deleted)").waitFor();
  await page.getByRole("button", { name: "Restore version 2" }).click();
  await page.getByRole("link", { name: "2", exact: true }).waitFor();
  await page.goto(`${stage.server.url}/catalog/web/absent`);
  await page.getByRole("alert").getByText("Catalog entry not found: web/absent").waitFor();
  await page.goto(`${stage.server.url}/catalog`);
  await page.getByRole("searchbox", { name: "Find" }).fill("nothing like it");
  await page.getByText("No document is like that").waitFor();
  await page.getByRole("button", { name: "Show all 1" }).click();
  await stage.look(page, "catalog");
}

// Drives the real server in a real browser.
//
//   node e2e/drive.mjs <path of the noetl program> [journey..]
//
// CHROMIUM names the browser. JOURNEYS names the folder: `journeys` checks, `long` checks and measures with much
// more in the database, `pictures` keeps pictures of the pages in docs/images.
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { chromium } from "playwright-core";

import { Server } from "./server.mjs";
import { Stage } from "./stage.mjs";

const [program, ...wanted] = process.argv.slice(2);
if (!program) {
  console.error("usage: node e2e/drive.mjs <path of the noetl program> [journey..]");
  process.exit(2);
}

const folder = new URL(`./${process.env.JOURNEYS || "journeys"}/`, import.meta.url);
const names = readdirSync(folder)
  .filter((name) => name.endsWith(".mjs"))
  .map((name) => name.slice(0, -4))
  .filter((name) => wanted.length === 0 || wanted.includes(name))
  .sort();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // As root, which containers often are, Chromium has no sandbox.
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
let failed = false;

async function drive(name) {
  // When its turn comes: some start what they need as they are loaded.
  const { default: journey, environment, command } = await import(new URL(`${name}.mjs`, folder));
  // A module that several journeys share is not a journey.
  if (!journey) return;
  const server = new Server(resolve(program), environment, command);
  const stage = new Stage(browser, server);
  const began = Date.now();
  try {
    await server.start();
    await journey(stage);
    await stage.close();
    console.log(`  ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (failure) {
    failed = true;
    console.error(`  FAILED  ${name}: ${failure.stack ?? failure}`);
    for (const page of stage.contexts.flatMap((context) => context.pages())) {
      const text = await page.locator("body").innerText().catch(() => "");
      console.error(`--- ${page.url()}\n${text.slice(0, 3000)}`);
      if (page.complaints?.length) console.error(`--- complaints: ${page.complaints.join("; ")}`);
    }
    await stage.close().catch(() => undefined);
  } finally {
    await server.remove();
  }
}

async function driveInTurn() {
  for (let name = names.shift(); name; name = names.shift()) await drive(name);
}

// Each journey has a server of its own and mostly waits for pages, so checks run two at a time. Measurements and
// pictures have the machine for themselves.
const count = names.length;
const lanes = process.env.JOURNEYS ? 1 : 2;
await Promise.all(Array.from({ length: lanes }, driveInTurn));
await browser.close();
process.exit(failed || count === 0 ? 1 : 0);

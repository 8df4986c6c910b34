// What every journey has at hand: a browser, a server, checks that fail, pictures.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const IMAGES = new URL("../../docs/images/", import.meta.url).pathname;

const where = ({ url, lineNumber, columnNumber }) => `${url}:${lineNumber}:${columnNumber}`;

export class Stage {
  constructor(browser, server) {
    Object.assign(this, { browser, server });
    this.contexts = [];
  }

  /** A new window. What it complains of in its console fails the journey. */
  async page(options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: "light", ...options });
    this.contexts.push(context);
    if (process.env.UI_DIST) await context.route((address) => address.origin === this.server.url && isOfUi(address), fromDist);
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.complaints = [];
    page.on("pageerror", (error) => page.complaints.push(error.message));
    page.on("console", (message) => {
      const text = message.text();
      // A refused or lost request is told by the browser itself; the page shows it.
      if (message.type() !== "error" || /Failed to load resource|net::ERR/.test(text)) return;
      // When lines are joined, Chromium's own editing gives what is left a style, which the policy takes away.
      if (text.startsWith("Applying inline style") && new URL(message.location().url).pathname === "/editor") return;
      page.complaints.push(`${text} (${where(message.location())})`);
    });
    return page;
  }

  async close() {
    const complaints = this.contexts.flatMap((context) => context.pages().flatMap((page) => page.complaints ?? []));
    await Promise.all(this.contexts.map((context) => context.close()));
    this.contexts = [];
    if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join("; ")}`);
  }

  /** Nobody is kept out: no serious finding, in light and in dark. */
  async look(page, name) {
    await this.#inBoth(page, async (scheme) => {
      // The page's policy lets no script in from elsewhere, so the checker comes by the debugger.
      await page.evaluate(AXE);
      // Without style sheets of its own making, which the policy refuses and the page would be blamed for.
      const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"], preload: false }));
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      if (serious.length > 0) {
        const said = serious.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | ")}`);
        throw new Error(`${name}, ${scheme}: ${said.join("\n")}`);
      }
    });
  }

  /** Keeps a picture of the page, light and dark, in docs/images; what is in a picture is also accessible. */
  async picture(page, name) {
    await this.look(page, name);
    mkdirSync(IMAGES, { recursive: true });
    await this.#inBoth(page, (scheme) => page.screenshot({ path: join(IMAGES, `${name}-${scheme}.png`) }));
  }

  async #inBoth(page, act) {
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.waitForFunction((wanted) => document.documentElement.dataset.theme === wanted, scheme);
      await act(scheme);
    }
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "no-preference" });
  }
}

const DIST = new URL("../dist/", import.meta.url).pathname;
const KINDS = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const isOfUi = ({ pathname }) => !/^\/(api|metrics|health|ingress)(\/|$)/.test(pathname);

/** With UI_DIST=1 pages come from web/dist as it is, so that a change needs no new program. */
async function fromDist(route) {
  const { pathname } = new URL(route.request().url());
  const file = /^\/(assets\/|icon\.svg)/.test(pathname) ? pathname.slice(1) : "index.html";
  await route.fulfill({ path: join(DIST, file), contentType: KINDS[file.split(".").pop()] });
}

export function equal(found, wanted, what) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    throw new Error(`${what}: found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);
  }
}

/** Nothing sticks out at the side. */
export async function fits(page, what) {
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (wide > room) throw new Error(`${what} is ${wide} wide where there is room for ${room}`);
}

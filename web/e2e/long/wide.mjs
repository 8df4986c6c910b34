// An execution of more than a hundred thousand events and twenty-five thousand bars (ITEMS).
import { equal, fits } from "../stage.mjs";
import { frames, held } from "./measure.mjs";

const ITEMS = Number(process.env.ITEMS ?? 26_000);
/** Fewer than thirty frames a second are seen as a stutter. */
const FRAME_MS = 34;
const READ_MS = 30_000;
const MOVED_MS = 1000;

const WIDE = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: wide, path: web/wide}
workload: {items: 10}
workflow:
  - step: each
    loop:
      in: "{{ range(workload.items) | list }}"
      iterator: number
      spec: {mode: parallel, max_in_flight: 64}
    tool: {kind: noop, result: {number: "{{ number }}"}}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: {done: true}}
`;

export default async function journey(stage) {
  const { server } = stage;
  await server.register(WIDE);
  const id = await server.execute("web/wide", { items: ITEMS });
  equal(await server.finished(id, 1_800_000), "COMPLETED", "the wide one");
  const { total_events: total } = await server.ask(`/api/executions/${id}/events?ids=string&limit=1`);
  console.log(`  ${total} events, ${ITEMS + 1} bars`);

  const page = await stage.page();
  const began = Date.now();
  await page.goto(`${server.url}/executions/${id}`);
  await page.locator(`.timeline[data-bars="${ITEMS + 1}"]`).waitFor({ timeout: 120_000 });
  held(`reading ${total} events`, Date.now() - began, READ_MS);

  const timeline = page.locator(".timeline");
  await timeline.scrollIntoViewIfNeeded();
  await timeline.focus();
  const zoomed = await frames(page, async () => {
    for (let count = 0; count < 40; count += 1) await page.keyboard.press(count < 20 ? "+" : count % 2 ? "ArrowRight" : "ArrowLeft");
  });
  held(`a frame while the timeline is zoomed and moved, 95 of 100 of ${zoomed.count}`, zoomed.usual, FRAME_MS);
  const box = await timeline.boundingBox();
  const pointed = await frames(page, async () => {
    for (let count = 0; count < 60; count += 1) await page.mouse.move(box.x + 200 + count * 8, box.y + 40 + count * 2);
  });
  held(`a frame while one points at bars, 95 of 100 of ${pointed.count}`, pointed.usual, FRAME_MS);

  const slider = page.getByRole("slider", { name: "Moment of the log" });
  for (const part of [0.25, 0.5, 0.75]) {
    const seq = Math.floor(total * part);
    const since = Date.now();
    await slider.fill(String(seq));
    await page.locator(".event.current").getByRole("button", { name: `Go to event ${seq}` }).waitFor();
    held(`going to event ${seq}`, Date.now() - since, MOVED_MS);
  }
  await page.getByRole("searchbox", { name: /Type, step, worker/ }).fill("playbook.completed");
  await page.getByText(`1 of ${total} events`).waitFor();
  await fits(page, "the wide execution");
}

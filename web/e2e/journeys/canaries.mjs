// A secret of no use that tools say again in every way they can, and every page that could show it: what is on
// the page, what the browser was sent, what it keeps, and where it was led.
import { createServer } from "node:http";

import { equal } from "../stage.mjs";

// It holds what JSON, URLs and HTML write in ways of their own.
const SECRET = 'canary "in the browser"/<b>&+q==?';
const MARK = "«secret:canary_web";

const STEPS = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sings, path: canaries/sings}
workload: {echo: ""}
keychain:
  - {name: c, kind: credential, credential: canary_web}
workflow:
  - step: start
    tool:
      kind: http
      method: POST
      url: "{{ workload.echo }}/said?q={{ keychain.c.token | urlencode }}"
      headers: {X-Canary: "{{ keychain.c.token | b64encode }}"}
      body: {given: "{{ keychain.c.token }}"}
    next: {arcs: [{step: shell, set: {ctx.heard: "{{ output }}"}}]}
  - step: shell
    loop: {in: "{{ [1, 2, 3] }}", iterator: n}
    tool:
      kind: shell
      env: {CANARY: "{{ keychain.c.token }}"}
      command: 'echo "printed $CANARY"; printf %s "$CANARY" | base64 -w0; echo "err $CANARY" >&2'
    next: {arcs: [{step: get}]}
  - step: get
    tool: {kind: secrets, auth: canary_web, field: token}
    next: {arcs: [{step: child}]}
  - step: child
    tool: {kind: playbook, path: canaries/child, payload: {token: "{{ get.value }}"}, return_result: true}
    next: {arcs: [{step: ask}]}
  - step: ask
    tool: {kind: approval, message: "Go on with {{ get.value }}, as {{ start.body }}?"}
    next: {arcs: [{step: fail}]}
  - step: fail
    tool:
      kind: python
      input: {token: "{{ keychain.c.token }}"}
      code: |
        print("printed", token)
        raise ValueError("wrong: " + token)
`;

const CHILD = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: canaries/child}
workload: {token: none}
workflow:
  - step: start
    tool: {kind: python, input: {token: "{{ workload.token }}"}, code: "result = {'said': token, token: 1}"}
    set: {ctx.kept: "{{ output }}"}
`;

/** The forms in which the secret is in a text. */
const seen = (text) => FORMS.filter((form) => text.includes(form));

/** Every way it may be written. In base64 without the ends, which depend on what stands beside it. */
function forms(secret) {
  const json = (text) => JSON.stringify(text).slice(1, -1);
  const html = secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const base64 = [0, 1, 2].map((before) => Buffer.from(" ".repeat(before) + secret).toString("base64").slice(4, -4));
  return [secret, json(secret), json(json(secret)), html, html.replaceAll('"', "&quot;"), encodeURIComponent(secret), ...base64];
}

const FORMS = forms(SECRET);

/** Says again what it is asked, and keeps it. */
async function echo() {
  const heard = [];
  const server = createServer(async (request, answer) => {
    let body = "";
    for await (const part of request) body += part;
    heard.push(request.url + JSON.stringify(request.headers) + body);
    answer.setHeader("content-type", "application/json");
    answer.setHeader("x-said", encodeURIComponent(body));
    answer.end(JSON.stringify({ url: request.url, headers: request.headers, body }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, heard, close: () => server.close() };
}

export default async function journey(stage) {
  const { server } = stage;
  const far = await echo();
  await server.ask("/api/credentials", { name: "canary_web", type: "bearer", data: { token: SECRET } });
  await server.register(CHILD);
  await server.register(STEPS);

  const searched = { places: 0, marks: 0, leaks: [] };
  const look = (what, text) => {
    searched.places += 1;
    searched.marks += text.split(MARK).length - 1;
    searched.leaks.push(...seen(text).map((form) => `${what} holds ${form}`));
  };
  const page = await stage.page();
  const bodies = [];
  page.on("response", (answer) => {
    // A stream of events has no end to wait for; what it brought is on the page.
    if ((answer.headers()["content-type"] ?? "").startsWith("text/event-stream")) return;
    bodies.push(answer.text().then((text) => look(`the answer of ${answer.url()}`, text), () => undefined));
  });
  page.on("console", (message) => look("the console", message.text()));
  const lookAt = async (what) => {
    // For what is asked for when the page is there; the answers are searched as well, so nothing depends on it.
    await page.waitForTimeout(200);
    look(`${what}, its text`, await page.locator("body").innerText());
    look(`${what}, its elements`, await page.content());
    look(`${what}, its address`, decodeURIComponent(page.url()) + page.url());
    look(`${what}, what is kept`, await page.evaluate(() => JSON.stringify([document.title, { ...localStorage }, { ...sessionStorage }, document.cookie])));
  };
  const visit = async (path) => {
    await page.goto(server.url + path);
    await page.locator("main h1, main h2").first().waitFor();
    await lookAt(path);
  };

  // Watched while it runs, so that what is streamed is shown as well.
  const id = await server.execute("canaries/sings", { echo: far.url });
  await page.goto(`${server.url}/executions/${id}?view=logs`);
  await page.locator('.react-flow__node[data-id="ask"] .step.is-waiting').waitFor();
  // What tools were given is the secret itself, in JSON and in base64, or nothing is proven.
  equal(seen(far.heard.join()).length >= 2, true, "the secret at the far side");
  await lookAt("while it waits");
  await visit("/operations/approvals");
  await page.getByText(MARK).first().waitFor();
  await server.answer(id);
  equal(await server.finished(id), "FAILED", "how it ended");

  for (const view of ["events", "context", "result", "logs", "children"]) await visit(`/executions/${id}?view=${view}`);
  for (const step of ["start", "shell", "get", "child", "ask", "fail"]) {
    for (const tab of ["input", "result", "error", "logs"]) await visit(`/executions/${id}?step=${step}&tab=${tab}`);
  }
  await visit(`/executions/${id}?view=events`);
  const { events } = await server.ask(`/api/executions/${id}/events?ids=string`);
  await openEvents(page, events, lookAt);
  const [child] = await server.ask(`/api/executions?ids=string&parent_execution_id=${id}`);
  for (const view of ["events", "context", "result"]) await visit(`/executions/${child.execution_id}?view=${view}`);
  for (const path of ["/", "/catalog", "/catalog/canaries/sings", "/editor?path=canaries%2Fsings", "/operations"]) await visit(path);
  for (const part of ["workers", "subscriptions", "schedules", "credentials"]) await visit(`/operations/${part}`);

  await Promise.all(bodies);
  far.close();
  equal(searched.leaks, [], "leaks");
  equal(searched.marks > 50, true, `marks in its place (${searched.marks} in ${searched.places} places)`);
}

/** Every event opened, with all it holds. One is open at a time. */
async function openEvents(page, events, lookAt) {
  const list = page.getByRole("group", { name: "Events" });
  for (const { event_id: id, seq } of events) {
    await page.getByPlaceholder("command.failed").fill(id);
    await list.locator(".event-row button.json-fold").click();
    await list.locator(".event-whole").waitFor();
    await lookAt(`event ${seq}`);
  }
}

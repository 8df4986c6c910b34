// A real server in a folder of its own, which can be stopped and started again where it was.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PATIENCE_MS = 60_000;

export async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** Waits until something is so; says what it waited for when it never is. */
export async function until(what, holds, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Server {
  constructor(program, environment = {}, command = "dev") {
    this.program = program;
    this.command = command;
    this.environment = environment;
    this.folder = mkdtempSync(join(tmpdir(), "noetl-web-"));
    this.said = "";
  }

  async start() {
    this.port ??= await freePort();
    this.url = `http://127.0.0.1:${this.port}`;
    this.process = spawn(this.program, [this.command, "--port", String(this.port)], {
      cwd: this.folder,
      // Journeys of other matters show no token.
      env: { ...process.env, NOETL_AUTH: "open", ...this.environment },
    });
    const keep = (text) => (this.said = (this.said + text).slice(-20_000));
    this.process.stdout.on("data", keep);
    this.process.stderr.on("data", keep);
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
    await until(`the server at ${this.url}\n${this.said}`, async () => {
      if (this.process.exitCode !== null) throw new Error(`the server stopped:\n${this.said}`);
      return fetch(`${this.url}/health`).then((said) => said.ok, () => false);
    });
    return this;
  }

  /** A worker in a process of its own, until it is stopped. */
  async worker(...options) {
    const worker = spawn(this.program, ["worker", "--server", this.url, ...options], {
      cwd: this.folder,
      env: { ...process.env, ...this.environment },
      stdio: ["ignore", "ignore", "pipe"],
    });
    worker.stderr.on("data", (text) => (this.said = (this.said + text).slice(-20_000)));
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    return {
      stop: () => {
        worker.kill("SIGKILL");
        return ended;
      },
    };
  }

  async stop() {
    this.process?.kill("SIGKILL");
    await this.ended;
  }

  async remove() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async ask(path, body, headers = {}) {
    const said = await fetch(this.url + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!said.ok) throw new Error(`${path} answered ${said.status}: ${await said.text()}`);
    return said.json();
  }

  register(content) {
    return this.ask("/api/catalog/register", { content });
  }

  async execute(path, payload = {}) {
    return (await this.ask("/api/execute?ids=string", { path, payload })).execution_id;
  }

  /** Says go on to a step that waits for a word, once it does. */
  async answer(id) {
    const parked = await until(`execution ${id} to wait for an answer`, async () => {
      const { events } = await this.ask(`/api/executions/${id}/events?ids=string`);
      return events.find((event) => event.event_type === "command.parked" && event.context?.callback);
    });
    const command = parked.meta.command_id.split(":").at(-1);
    return this.ask(`/api/executions/${id}/answers/${command}`, { token: parked.context.callback.token, data: { approved: true } });
  }

  async finished(id, patience = PATIENCE_MS) {
    const holds = async () => {
      const { status } = await this.ask(`/api/executions/${id}/status?ids=string`);
      return status === "RUNNING" ? null : status;
    };
    return until(`execution ${id} to end`, holds, patience);
  }
}

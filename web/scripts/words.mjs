// Writes the words that the editor completes: the keys that the server's own reader of documents knows,
// and the settings that the pages about tools name. Run it after either changed; a test says when.
import { readFileSync, writeFileSync } from "node:fs";

const root = new URL("../../", import.meta.url);
const target = new URL("../src/pages/editor/words.json", import.meta.url);
const reader = "crates/noetl-playbook/src/decode/";

const text = (path) => readFileSync(new URL(path, root), "utf8");

/** A list of texts that a file of the reader of documents holds under a name. */
function list(file, name) {
  const found = new RegExp(`const ${name}: &\\[&str\\] =\\s*&\\[([^\\]]*)\\]`).exec(text(reader + file));
  if (!found) throw new Error(`${file} has no list ${name}; say in scripts/words.mjs where it is`);
  return [...found[1].matchAll(/"([^"]+)"/g)].map((match) => match[1]);
}

/** Table rows as lists of cells, of every table whose first column has this title. */
function rows(markdown, title) {
  const found = [];
  let inside = false;
  for (const line of markdown.split("\n")) {
    if (!line.startsWith("|")) inside = false;
    else if (line.startsWith(`| ${title} |`)) inside = true;
    else if (inside && !line.startsWith("|---")) found.push(line.slice(1, -1).split(" | ").map((cell) => cell.trim()));
  }
  return found;
}

/** What a page says, without its links and marks. */
const plain = (words) => words.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");

/** The settings of a table, each with what the page says of it; `a.b` belongs below `a`. */
function settings(table) {
  const found = {};
  for (const cells of table) {
    const means = plain(cells.at(-1) ?? "");
    for (const [, name] of (cells[0] ?? "").matchAll(/`([A-Za-z_]+)(?=[.`])/g)) found[name] ??= means;
  }
  return found;
}

const none = (names) => Object.fromEntries(names.map((name) => [name, ""]));

export function words() {
  const kinds = list("kinds.rs", "KNOWN_KINDS");
  const does = Object.fromEntries(
    rows(text("docs/tools/README.md"), "kind").filter((cells) => /^\[/.test(cells[0])).map(([kind, what]) => [plain(kind), plain(what)]),
  );
  const common = settings(rows(text("docs/tools/README.md"), "key"));
  const tools = Object.fromEntries(
    kinds.map((kind) => [kind, { ...settings(rows(text(`docs/tools/${kind}.md`), "setting")), ...common, spec: "" }]),
  );
  return {
    kinds: Object.fromEntries(kinds.map((kind) => [kind, does[kind] ?? ""])),
    tools,
    keys: {
      root: none(list("root.rs", "KEYS")),
      metadata: none(["name", "path", "description", "labels", "exposed_in_ui"]),
      executor: none(list("executor.rs", "KEYS")),
      "executor.spec": none(list("executor.rs", "SPEC_KEYS")),
      "executor.spec.policy": none(list("executor.rs", "POLICY_KEYS")),
      step: none(list("step.rs", "KEYS")),
      "step.spec": none(list("step.rs", "SPEC_KEYS")),
      "step.spec.policy": none(list("step.rs", "POLICY_KEYS")),
      "step.spec.policy.admit": none(list("admit.rs", "KEYS")),
      loop: none(list("loop.rs", "KEYS")),
      "loop.spec": none(list("loop.rs", "SPEC_KEYS")),
      "loop.spec.policy": none(list("loop.rs", "POLICY_KEYS")),
      next: none(list("next.rs", "ROUTER_KEYS")),
      "next.spec": none(list("next.rs", "ROUTER_SPEC_KEYS")),
      arc: none(list("arc.rs", "KEYS")),
      "tool.spec": none(["policy"]),
      "tool.spec.policy": none(list("policy.rs", "KEYS")),
      rule: none(list("policy.rs", "RULE_KEYS")),
      then: none(list("policy.rs", "ACTION_KEYS")),
      workbook: none(list("workbook.rs", "KEYS")),
      subscription: none(list("subscription.rs", "SPEC_KEYS")),
      schedule: none(list("schedule.rs", "SPEC_KEYS")),
    },
    values: {
      "root.kind": ["Playbook", "Subscription", "Schedule"],
      "root.apiVersion": list("root.rs", "API_VERSIONS"),
      "step.join": list("step.rs", "JOINS"),
      "loop.spec.mode": list("loop.rs", "MODES"),
      "loop.spec.policy.exec": list("loop.rs", "EXECS"),
      "next.spec.mode": list("next.rs", "MODES"),
      "then.do": list("policy.rs", "ACTIONS"),
      "then.backoff": list("policy.rs", "BACKOFFS"),
    },
  };
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  writeFileSync(target, `${JSON.stringify(words(), null, 2)}\n`);
}

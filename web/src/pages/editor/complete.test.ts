import { describe, expect, it } from "vitest";

import { words } from "../../../scripts/words.mjs";
import { offered } from "./complete";
import table from "./words.json";

/** What is offered at the bar in a text. */
function at(text: string): string[] {
  const place = text.indexOf("|");
  const found = offered(text.replace("|", ""), place);
  return found?.words.map((word) => word.label) ?? [];
}

it("the table is what the reader of documents and the pages about tools say", () => {
  expect(table, "run `npm run words`").toEqual(words());
});

describe("keys", () => {
  it("are those of the place", () => {
    expect(at("|")).toContain("workflow");
    expect(at("kind: Playbook\nme|")).toContain("metadata");
    expect(at("workflow:\n  - step: a\n    |")).toContain("tool");
    expect(at("workflow:\n  - |")).toContain("step");
    expect(at("workflow:\n- step: a\n  |")).toContain("tool");
    expect(at("workflow:\n  - step: a\n    loop:\n      in: x\n      |")).toContain("iterator");
    expect(at("workflow:\n  - step: a\n    next:\n      arcs:\n        - step: b\n          |")).toContain("when");
    expect(at("workflow:\n  - step: a\n    next:\n      spec:\n        |")).toEqual(["mode", "on_no_match"]);
    expect(at("executor:\n  spec:\n    |")).toContain("pool");
  });

  it("of a tool are those of its kind, wherever that is written", () => {
    const tool = (lines: string) => at(`workflow:\n  - step: a\n    tool:\n      ${lines}`);
    expect(tool("kind: http\n      |")).toContain("follow_redirects");
    expect(tool("|\n      kind: python\n")).toContain("libs");
    expect(tool("kind: http\n      url: x\n    next:\n      |")).toContain("arcs");
    expect(tool("|")).toEqual(["kind", "name", "input", "auth", "timeout", "set", "spec"]);
    expect(at("workflow:\n  - step: a\n    tool: {kind: shell, |")).toContain("cwd");
    expect(at("workflow:\n  - step: a\n    tool:\n      - fetch:\n          kind: http\n          |")).toContain("url");
    expect(at("workflow:\n  - step: a\n    tool:\n      - kind: http\n        |")).toContain("url");
    expect(at("workflow:\n  - step: a\n    tool:\n      - kind: http\n        url: x\n      - |")).not.toContain("url");
  });

  it("of a policy are found below it", () => {
    const rules = "workflow:\n  - step: a\n    tool:\n      kind: http\n      spec:\n        policy:\n          rules:\n            - when: x\n";
    expect(at(`${rules}              |`)).toContain("then");
    expect(at(`${rules}              then:\n                |`)).toContain("backoff");
    expect(at(`${rules}              then: {do: |`)).toContain("retry");
  });

  it("of other documents are theirs", () => {
    expect(at("kind: Subscription\nspec:\n  |")).toContain("dispatch");
    expect(at("kind: Schedule\nspec:\n  |")).toContain("cron");
  });

  it("are not offered where the writer alone knows", () => {
    expect(at("workload:\n  |")).toEqual([]);
    expect(at("workflow:\n  - step: a\n    tool:\n      kind: python\n      code: |\n        x")).toEqual([]);
    expect(at("workflow:\n  - step: a\n    tool:\n      kind: python\n      input:\n        |")).toEqual([]);
    expect(at("# |")).toEqual([]);
    expect(at("constructor:\n  |")).toEqual([]);
  });
});

describe("values", () => {
  it("are tool kinds, words of the language and names of steps", () => {
    expect(at("workflow:\n  - step: a\n    tool:\n      kind: |")).toContain("approval");
    expect(at("workflow:\n  - step: a\n    tool: {kind: py|")).toContain("python");
    expect(at("kind: |")).toEqual(["Playbook", "Subscription", "Schedule"]);
    expect(at("workflow:\n  - step: a\n    next:\n      arcs:\n        - step: |\n  - step: end\n")).toEqual(["a", "end"]);
    expect(at("workflow:\n  - step: a\n    join: |")).toEqual(["all", "each", "any"]);
  });

  it("are not offered in other positions", () => {
    expect(at("metadata:\n  kind: |")).toEqual([]);
    expect(at('workflow:\n  - step: a\n    tool:\n      kind: "{{ |')).toEqual([]);
  });
});

it("a word begins where it is being written", () => {
  const text = "workflow:\n  - step: a\n    to";
  expect(offered(text, text.length)).toMatchObject({ from: text.length - 2, keys: true });
});

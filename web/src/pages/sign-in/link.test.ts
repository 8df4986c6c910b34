import { expect, test } from "vitest";

import { codeIn } from "./link";

test("a code is read from the fragment of an address and from nothing else", () => {
  expect(codeIn("#code=abc-_1")).toBe("abc-_1");
  for (const hash of ["", "#", "#code=", "#other=1", "code"]) expect(codeIn(hash)).toBeNull();
});

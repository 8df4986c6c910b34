import { expect, test } from "vitest";

import type { Grant } from "../../api/operations";
import { playbooksOf } from "./grants";

const grant = (said: Partial<Grant>): Grant => ({ id: "1", prefix: "", created_at: "2026-01-02T03:04:05Z", ...said });

test("a credential without a grant is for all playbooks, one with grants for those below their prefixes", () => {
  const grants = [grant({ credential: "db", prefix: "team-a/" }), grant({ credential: "db", prefix: "team-b/" }), grant({ role: "author", prefix: "x/" })];
  expect(playbooksOf("db", grants)).toBe("team-a/, team-b/");
  expect(playbooksOf("other", grants)).toBe("all");
  expect(playbooksOf("other", [grant({ credential: "other" })])).toBe("all");
});

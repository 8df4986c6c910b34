// Removes what an earlier build left in dist, and keeps the file that makes the folder known.
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const dist = new URL("../dist/", import.meta.url).pathname;
for (const name of readdirSync(dist)) {
  if (name !== ".gitignore") rmSync(join(dist, name), { recursive: true });
}

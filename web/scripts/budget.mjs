// Fails when the first load would cost more than it may: the page, its style sheets and whatever
// script is fetched before the list of executions can be painted, compressed with gzip.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT = 300 * 1024;
const FIRST = ["index.html", "src/pages/executions/page.tsx"];

const dist = new URL("../dist/", import.meta.url).pathname;
const manifest = JSON.parse(readFileSync(join(dist, ".vite/manifest.json"), "utf8"));
const needed = new Set(["index.html"]);
const seen = new Set();

function take(key) {
  if (seen.has(key)) return;
  seen.add(key);
  const chunk = manifest[key];
  if (!chunk) throw new Error(`the build has no ${key}; name the page of executions in scripts/budget.mjs`);
  needed.add(chunk.file);
  for (const sheet of chunk.css ?? []) needed.add(sheet);
  for (const other of chunk.imports ?? []) take(other);
}
FIRST.forEach(take);

let total = 0;
for (const file of needed) {
  const size = gzipSync(readFileSync(join(dist, file)), { level: 9 }).length;
  total += size;
  console.log(`${String(size).padStart(8)}  ${file}`);
}
console.log(`${String(total).padStart(8)}  in all, of ${LIMIT}`);
if (total > LIMIT) {
  console.error("The first load is too large.");
  process.exit(1);
}

// Writes a .gz and a .br beside everything worth compressing, so that the server never does it.
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url).pathname;
const worth = /\.(js|css|html|svg|json)$/;

function files(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}

for (const path of files(dist).filter((path) => worth.test(path))) {
  const bytes = readFileSync(path);
  const level = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  const made = [
    [".gz", gzipSync(bytes, { level: 9 })],
    [".br", brotliCompressSync(bytes, { params: level })],
  ];
  for (const [ending, packed] of made) {
    if (packed.length < bytes.length) writeFileSync(path + ending, packed);
  }
}

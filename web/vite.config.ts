import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where `npm run dev` finds the API. The page itself only ever asks where it came from.
const server = process.env["NOETL_SERVER_URL"] ?? "http://127.0.0.1:8082";
const proxy = { "/api": server, "/metrics": server, "/health": server };

export default defineConfig({
  plugins: [react()],
  build: {
    // `dist` holds a tracked file, by which a build without Node knows the folder; scripts/clean.mjs
    // removes the rest.
    emptyOutDir: false,
    // A font or picture inside a style sheet would need `data:` in the policy of the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    manifest: true,
  },
  server: { proxy },
  preview: { proxy },
  test: {
    include: ["src/**/*.test.{ts,tsx}"],
    environment: "node",
    env: { TZ: "UTC" },
  },
});

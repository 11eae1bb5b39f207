import { defineConfig } from "vite";

// Names carry a hash of what is inside, so the server lets browsers keep them for ever; addresses are relative to the
// script that asks, so the page works under any prefix. Nothing is put into the HTML itself: the CSP forbids it.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/onward/api/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false, // a page whose code came and whose styles did not would stand there bare
    target: "es2022",
    chunkSizeWarningLimit: 250,
  },
  server: {
    // `npm run dev` beside a server: its address in ONWARD_DEV, its token in ONWARD_DEV_TOKEN
    proxy: process.env.ONWARD_DEV
      ? {
          "^/(api|docs|login)": {
            target: process.env.ONWARD_DEV,
            headers: { authorization: `Bearer ${process.env.ONWARD_DEV_TOKEN ?? ""}` },
          },
        }
      : {},
  },
});

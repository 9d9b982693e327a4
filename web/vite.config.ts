// Builds a script and a style for pages that hold their data, and others for the explorer, which asks a server; with their
// checksums for the content security policy.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { type Plugin } from "vite";
import { defineConfig } from "vitest/config";

const checksum = (text: string | Uint8Array): string => `sha256-${createHash("sha256").update(text).digest("base64")}`;

// The licence of a package, in full: each copy of the package must hold it, and so each page.
function licence(folder: string): string {
  const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  if (!file) throw new Error(`${name} has no licence`);
  return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}`;
}

// Begins each script with the licences of the packages in it.
const licences: Plugin = {
  name: "licences",
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type !== "chunk") continue;
      const folders = file.moduleIds.flatMap((id) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
      const texts = [...new Set(folders)].sort().map(licence);
      if (texts.length) file.code = `/*!\n${texts.join("\n\n")}\n*/\n${file.code}`;
    }
  },
};

// Writes the checksum of each file beside it: `cargo build` has none of its own at hand.
const checksums: Plugin = {
  name: "checksums",
  generateBundle: {
    order: "post",
    handler(_options, bundle) {
      for (const [name, file] of Object.entries(bundle)) {
        const text = file.type === "chunk" ? file.code : file.source;
        this.emitFile({ type: "asset", fileName: `${name}.checksum`, source: checksum(text) });
      }
    },
  },
};

export default defineConfig(({ mode }) => ({
  plugins: [licences, checksums],
  build: {
    outDir: process.env.BOREHOLE_WEB_OUTPUT ?? "../crates/web/src/assets",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: true,
    rollupOptions: {
      input: `src/${mode}/main.tsx`,
      output: {
        format: "iife" as const,
        entryFileNames: `${mode}.js`,
        assetFileNames: `${mode}[extname]`,
      },
    },
  },
  // The tests are no race: machines that run them are busy.
  test: { include: ["test/**/*.test.ts"], testTimeout: 120_000 },
}));

// Writes a brotli and a gzip variant beside each text file of the build; the gateway only chooses between them.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

const TEXT = /\.(?:js|css|html|svg|json|txt|webmanifest)$/;
/** Below this a variant saves nothing. */
const SMALLEST_BYTES = 1024;

export function compressPlugin(): Plugin {
  let folder = '';
  return {
    name: 'compressed-variants',
    apply: 'build',
    configResolved(config) {
      folder = config.build.outDir;
    },
    // Not at the close of the bundle: that comes after a failure, too, and would hide it.
    writeBundle() {
      for (const name of readdirSync(folder, { recursive: true }) as string[]) {
        if (!TEXT.test(name)) continue;
        const file = join(folder, name);
        const bytes = readFileSync(file);
        if (bytes.length < SMALLEST_BYTES) continue;
        writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
        writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
      }
    },
  };
}

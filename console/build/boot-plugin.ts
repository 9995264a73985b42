// Puts src/app/boot.js in front of everything else as a blocking script of its own: theme and language must be known
// before the first paint, and an inline script is not allowed to run.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plugin } from 'vite';

export function bootPlugin(root: string): Plugin {
  const file = join(root, 'src/app/boot.js');
  const tag = (src: string) => [{ tag: 'script', attrs: { src }, injectTo: 'head-prepend' as const }];
  let serving = false;
  return {
    name: 'boot-script',
    configResolved(config) {
      serving = config.command === 'serve';
    },
    buildStart() {
      this.addWatchFile(file);
    },
    transformIndexHtml() {
      if (serving) return tag('/src/app/boot.js');
      return tag(`/${bootName()}`);
    },
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: bootName(), source: readFileSync(file) });
    },
  };

  function bootName(): string {
    return `assets/boot-${createHash('sha256').update(readFileSync(file)).digest('base64url').slice(0, 8)}.js`;
  }
}

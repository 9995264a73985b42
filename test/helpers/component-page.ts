// Shared parts of the Web UI, each on a page of its own without a console: built as the console is, and handed to the
// browser under the console's policy by the test itself.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { cacheDir, root } from '../../bin/lib/root.ts';
import { PAGE_POLICY } from '../../services/api-gateway/headers.ts';
import { type Visit, type VisitOptions, visit } from './console-pages.ts';

const ORIGIN = 'http://localhost';
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

export interface ComponentPages {
  /** Opens the part of test/components that has this name, in small letters; `things/…`: the Web UI with made-up features. */
  show(browser: Browser, part: string, options?: VisitOptions): Promise<Visit>;
  remove(): void;
}

/** Builds the parts; throws with what the build said where it fails. */
export async function buildComponents(): Promise<ComponentPages> {
  const folder = mkdtempSync(join(cacheDir, 'components-'));
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js');
  const config = join(root, 'test', 'components', 'vite.config.ts');
  const args = [vite, 'build', '--config', config, '--outDir', folder, '--emptyOutDir', '--logLevel', 'warn'];
  const env = { ...process.env, NODE_ENV: 'production' };
  const build = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const output of [build.stdout, build.stderr])
    output.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  const [code] = await once(build, 'close');
  if (code !== 0) throw new Error(`the parts could not be built:\n${said}`);

  const assets = readdirSync(join(folder, 'assets'));
  const html = { parts: page(folder, assets, 'components/main.ts'), crowded: page(folder, assets, 'app/main.ts') };
  return {
    remove: () => rmSync(folder, { recursive: true, force: true }),
    async show(browser, part, options = {}) {
      const visitor = await visit(browser, ORIGIN, options);
      await visitor.context.route(`${ORIGIN}/**`, async (route) => {
        const { pathname } = new URL(route.request().url());
        const file = join(folder, pathname);
        if (extname(pathname) === '')
          await route.fulfill({
            body: pathname.startsWith('/things') ? html.crowded : html.parts,
            contentType: 'text/html',
            headers: { 'content-security-policy': PAGE_POLICY },
          });
        else if (existsSync(file))
          await route.fulfill({
            body: readFileSync(file),
            contentType: TYPES[extname(file)] ?? 'application/octet-stream',
          });
        else await route.fulfill({ status: 404 });
      });
      await visitor.page.goto(`/${part}`);
      await visitor.page.locator('main > :nth-child(2)').first().waitFor();
      return visitor;
    },
  };
}

/** The page that the build would have made of console/index.html. */
function page(folder: string, assets: readonly string[], beginning: string): string {
  const manifest = JSON.parse(readFileSync(join(folder, '.vite', 'manifest.json'), 'utf8')) as Record<
    string,
    { file: string; isEntry?: boolean; css?: string[]; imports?: string[] }
  >;
  const [, entry] = Object.entries(manifest).find(([name, { isEntry }]) => isEntry && name.endsWith(beginning))!;
  const styles = new Set<string>();
  const seen = new Set<string>();
  const collect = ({ css = [], imports = [] }: { css?: string[]; imports?: string[] }) => {
    for (const name of imports) {
      if (seen.has(name)) continue;
      seen.add(name);
      collect(manifest[name]!);
    }
    for (const name of css) styles.add(name);
  };
  collect(entry);
  const boot = assets.find((name) => name.startsWith('boot-'));
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Part</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="/icon.svg" type="image/svg+xml">
<script src="/assets/${boot}"></script>${[...styles].map((name) => `<link rel="stylesheet" href="/${name}">`).join('')}
</head><body><div id="app"></div><script type="module" src="/${entry.file}"></script></body></html>`;
}

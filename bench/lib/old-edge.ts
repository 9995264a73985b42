// The edge as it was before its way of a request was rebuilt: what the present one is measured beside, in the same run.
// It is built once from the commit that stands here, with the settings it was started with then.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { renderCaddyConfig } from '../../agents/edge/caddy/caddy-config.ts';
import { buildCaddyFrom } from '../../bin/lib/caddy.ts';
import { Refusal } from '../../bin/lib/progress.ts';
import { cacheDir, root } from '../../bin/lib/root.ts';
import type { EdgeBuild } from './edge.ts';

export const OLD_COMMIT = '6247d91de3c9f388337df64b400e97bd83eb8cf4';

const folder = path.join(cacheDir, `old-edge-${OLD_COMMIT}`);
const sources = path.join(folder, 'sources');
// The module, and what renders its static configuration: the old edge refuses settings it does not know.
const CADDY = 'agents/caddy';
const CONFIG = 'agents/edge/caddy/caddy-config.ts';

/** Folder of the old edge's Go module; throws a Refusal when the clone does not hold the commit. */
export function oldSources(): string {
  if (!existsSync(sources)) {
    const found = git('cat-file', '-e', `${OLD_COMMIT}^{commit}`);
    if (found.status !== 0) throw new Refusal(missing(git('rev-parse', '--is-shallow-repository').stdout));
    const unpacked = `${sources}.${process.pid}`;
    mkdirSync(unpacked, { recursive: true });
    const archive = `${unpacked}.tar`;
    try {
      must(git('archive', '--output', archive, OLD_COMMIT, CADDY, CONFIG));
      must(spawnSync('tar', ['-xf', archive, '-C', unpacked], { encoding: 'utf8' }));
      // Whoever was faster unpacked the same.
      if (!existsSync(sources)) renameSync(unpacked, sources);
    } finally {
      rmSync(archive, { force: true });
      rmSync(unpacked, { recursive: true, force: true });
    }
  }
  return path.join(sources, CADDY);
}

/** The old edge, built by the first call; throws a Refusal when the clone does not hold the commit. */
export async function oldEdge(): Promise<EdgeBuild> {
  const binary = path.join(folder, 'svc-caddy');
  const from = oldSources();
  if (!existsSync(binary)) await buildCaddyFrom(from, binary);
  const module = (await import(pathToFileURL(path.join(sources, CONFIG)).href)) as {
    renderCaddyConfig: typeof renderCaddyConfig;
  };
  return { binary, config: module.renderCaddyConfig };
}

function git(...words: string[]) {
  return spawnSync('git', words, { cwd: root, encoding: 'utf8' });
}

function must({ status, stderr, error }: ReturnType<typeof git>): void {
  if (status !== 0) throw error ?? new Error(stderr.trim());
}

function missing(shallow: string): string {
  const what = `The edge is compared with that of commit ${OLD_COMMIT}, which this clone does not hold.`;
  return shallow.trim() === 'true'
    ? `${what} The clone is shallow:\n  git fetch --unshallow`
    : `${what}\n  git fetch --all`;
}

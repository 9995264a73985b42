// The pinned Node that runs the agent: the package of npm for this processor, from node_modules or from the registry.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../commands.ts';
import { during, Refusal } from '../progress.ts';
import { cacheDir, root } from '../root.ts';
import type { Work } from './licences.ts';

const FETCH_MS = 10 * 60_000;

export interface NodeRuntime {
  binary: string;
  work: Work;
}

/** `arch` in Node's words. */
export async function nodeRuntime(arch: string): Promise<NodeRuntime> {
  const name = `node-linux-${arch}`;
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; integrity: string }>;
  };
  const pinned = lock.packages[`node_modules/${name}`];
  if (!pinned) throw new Refusal(`package-lock.json pins no Node for ${arch}`);
  const installed = join(root, 'node_modules', name);
  const present = existsSync(join(installed, 'bin', 'node')) && versionOf(installed) === pinned.version;
  const folder = present ? installed : await fetched(name, pinned);
  return {
    binary: join(folder, 'bin', 'node'),
    work: { name: 'Node.js', version: pinned.version, licence: 'MIT', folder },
  };
}

function versionOf(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version;
}

/** The package as npm hands it out, checked against the lock. */
async function fetched(name: string, { version, integrity }: { version: string; integrity: string }): Promise<string> {
  const folder = join(cacheDir, 'node-runtime', `${name}-${version}`);
  if (existsSync(folder)) return folder;
  mkdirSync(join(folder, '..'), { recursive: true });
  const work = mkdtempSync(`${folder}.`);
  try {
    await during(`fetching ${name} ${version}`, () =>
      run('npm', ['pack', `${name}@${version}`, '--pack-destination', work], { cwd: work, timeout: FETCH_MS }),
    );
    const archive = join(work, `${name}-${version}.tgz`);
    const digest = createHash('sha512').update(readFileSync(archive)).digest('base64');
    if (integrity !== `sha512-${digest}`)
      throw new Refusal(`${name} ${version} does not match its hash in package-lock.json`);
    await run('tar', ['-xzf', archive, '-C', work, 'package/bin/node', 'package/LICENSE', 'package/package.json']);
    renameSync(join(work, 'package'), folder);
    return folder;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

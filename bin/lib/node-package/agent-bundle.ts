// The agent as one file, with the packages it needs inside.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { Refusal } from '../progress.ts';
import { root } from '../root.ts';
import type { Work } from './licences.ts';

export interface AgentBundle {
  code: string;
  /** Packages of others that are part of it. */
  works: Work[];
}

export async function bundleAgent(): Promise<AgentBundle> {
  const bundler = await rolldown({
    input: join(root, 'agents', 'edge', 'main.ts'),
    platform: 'node',
    cwd: root,
    // Paths as they are below this folder: they become comments of the bundle.
    resolve: { symlinks: false },
    onLog(_level, log) {
      throw new Refusal(`the agent cannot be bundled: ${log.message}`);
    },
  });
  try {
    const { output } = await bundler.generate({ format: 'esm', codeSplitting: false });
    const [bundle] = output;
    if (bundle.code.includes(root)) throw new Refusal('the bundled agent contains the path of its build folder');
    return { code: bundle.code, works: packagesOf(Object.keys(bundle.modules)) };
  } finally {
    await bundler.close();
  }
}

const PACKAGE = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//;

function packagesOf(modules: readonly string[]): Work[] {
  const folders = new Map<string, string>();
  for (const module of modules) {
    const [, folder, name] = PACKAGE.exec(module) ?? [];
    if (folder !== undefined && name !== undefined) folders.set(folder, name);
  }
  return [...folders].map(([folder, name]) => {
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      version: string;
      license?: string;
    };
    return { name, version, licence: license ?? null, folder };
  });
}

// Generated files: made from proto/, contract/ and what features register, committed, and compared with a fresh generation by the check.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { apiDocument } from './api-document.ts';
import { run } from './commands.ts';
import { generateRegisters, REGISTERS } from './registers.ts';
import { root } from './root.ts';

const TIMEOUT_MS = 10 * 60_000;

export const buf = join(root, 'node_modules', '.bin', 'buf');

/** Image of proto/ that wire changes are compared with. */
export const protoBaseline = join(root, 'proto', 'baseline.binpb');

export interface Generated {
  name: string;
  /** Folder or file, relative to the root. */
  path: string;
  /** Whether its source exists in this tree. */
  applies(): boolean;
  /** Writes it below `out`, which stands for the root. */
  generate(out: string): Promise<void>;
}

/** Folders of the registers; what stands in them is generated. */
const REGISTER_FOLDERS = [...new Set(REGISTERS.map(({ file }) => dirname(file)))];

export const generated: readonly Generated[] = [
  // First: the others read the contract through them.
  ...REGISTER_FOLDERS.map((path) => ({
    name: `registers of ${dirname(path)}`,
    path,
    applies: () => true,
    generate: async (out: string) => generateRegisters(root, out, path),
  })),
  {
    name: 'TypeScript messages',
    path: 'proto/gen',
    applies: () => existsSync(join(root, 'buf.gen.yaml')),
    generate: async (out) => {
      await run(buf, ['generate', '--output', out], { cwd: root, timeout: TIMEOUT_MS });
    },
  },
  {
    name: 'Go messages',
    path: 'agents/caddy/gen',
    applies: () => existsSync(join(root, 'agents/caddy/buf.gen.yaml')),
    generate: async (out) => {
      const cwd = join(root, 'agents', 'caddy');
      await run(buf, ['generate', '--output', join(out, 'agents', 'caddy')], { cwd, timeout: TIMEOUT_MS });
    },
  },
  {
    name: 'OpenAPI document',
    path: 'docs/api/openapi.json',
    applies: () => existsSync(join(root, 'contract/openapi.ts')),
    generate: async (out) => {
      const document = await apiDocument();
      const file = join(out, 'docs/api/openapi.json');
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
    },
  },
  {
    name: 'reference',
    path: 'docs/reference',
    applies: () => existsSync(join(root, 'contract/openapi.ts')),
    generate: async (out) => {
      const { generateReference } = await import('./generate-reference.ts');
      generateReference(await apiDocument(), join(out, 'docs/reference'));
    },
  },
  {
    name: 'typed client',
    path: 'client/src/generated',
    applies: () => existsSync(join(root, 'contract/openapi.ts')),
    generate: async (out) => {
      const { generateClient } = await import('./generate-client.ts');
      generateClient(await apiDocument(), join(out, 'client/src/generated'));
    },
  },
];

function filesBelow(path: string): string[] {
  if (!existsSync(path)) return [];
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(path, join(entry.parentPath, entry.name)));
}

/** Files that differ between the tree and a fresh generation below `fresh`, relative to the root. */
export function differences(target: Generated, fresh: string): string[] {
  const [here, there] = [join(root, target.path), join(fresh, target.path)];
  if (target.path.endsWith('.json')) {
    const same = existsSync(here) && readFileSync(here, 'utf8') === readFileSync(there, 'utf8');
    return same ? [] : [target.path];
  }
  const names = new Set([...filesBelow(here), ...filesBelow(there)]);
  const differs = (name: string) => {
    const [a, b] = [join(here, name), join(there, name)];
    return !existsSync(a) || !existsSync(b) || !readFileSync(a).equals(readFileSync(b));
  };
  return [...names].filter(differs).map((name) => join(target.path, name));
}

/** Generates one target in place, removing files that are not generated any more. */
export async function regenerate(target: Generated): Promise<void> {
  rmSync(join(root, target.path), { recursive: true, force: true });
  await target.generate(root);
}

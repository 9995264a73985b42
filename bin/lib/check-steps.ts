// The steps of `npm run check`: everything that can be judged without running the product.
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findGo, GO_AT_ONCE, GO_BUILD_FLAGS, GO_MODULES, GO_TEST_TAGS } from './caddy.ts';
import { run } from './commands.ts';
import { buf, differences, generated, protoBaseline } from './generated.ts';
import { cacheDir, root, SOURCE_FOLDERS } from './root.ts';

export interface CheckStep {
  name: string;
  /** Throws with everything a person needs to mend it in `stdout`, `stderr` or the message. */
  run(): Promise<unknown>;
  /** What of the machine only one job of a test run may use at a time. */
  needs?: readonly string[];
}

const TIMEOUT_MS = 15 * 60_000;

function tool(file: string, args: string[]): Promise<unknown> {
  return run(file, args, { cwd: root, timeout: TIMEOUT_MS, maxBuffer: 1 << 26 });
}

function node(script: string, args: string[]): Promise<unknown> {
  return tool(process.execPath, [join(root, 'node_modules', script), ...args]);
}

/**
 * Options of a type checker that keeps what it found, so that the next run looks only at what changed. It compares the
 * hashes of all files and its own version; the packages' versions are in the name, because compilers beside it read
 * sources, too.
 */
function incremental(name: string): string[] {
  const packages = createHash('sha256').update(readFileSync(join(root, 'package-lock.json')));
  const file = join(cacheDir, 'types', `${name}-${packages.digest('hex').slice(0, 12)}.tsbuildinfo`);
  return ['--incremental', '--tsBuildInfoFile', file];
}

/** Runs a program of Go in each module; all their output. */
async function go(args: string[], program = 'go'): Promise<string> {
  const found = await findGo();
  if ('problem' in found) throw new Error(found.problem);
  const file = program === 'go' ? found.go : join(found.go, '..', program);
  const env = { ...process.env, CGO_ENABLED: '0' };
  let output = '';
  for (const cwd of GO_MODULES)
    output += (await run(file, args, { cwd, timeout: TIMEOUT_MS, maxBuffer: 1 << 26, env })).stdout;
  return output;
}

async function checkGenerated(): Promise<void> {
  const fresh = mkdtempSync(join(tmpdir(), 'generated-'));
  try {
    const stale: string[] = [];
    for (const target of generated) {
      if (!target.applies()) continue;
      await target.generate(fresh);
      stale.push(...differences(target, fresh));
    }
    if (stale.length > 0) throw new Error(`run \`npm run generate\` and commit:\n  ${stale.join('\n  ')}`);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

export const checkSteps: readonly CheckStep[] = [
  {
    name: 'format and lint',
    run: () =>
      node('@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '--colors=off', '--max-diagnostics=50']),
  },
  {
    name: 'types',
    run: () => node('typescript7/bin/tsc', ['-p', 'tsconfig.json', ...incremental('all')]),
  },
  { name: 'types of the client', run: () => node('typescript7/bin/tsc', ['-p', 'client/tsconfig.json', '--noEmit']) },
  {
    name: 'types of the Web UI',
    run: () => node('vue-tsc/bin/vue-tsc.js', ['-p', 'console/tsconfig.json', ...incremental('web-ui')]),
  },
  {
    name: 'layering',
    run: () => {
      const folders = SOURCE_FOLDERS.filter((folder) => existsSync(join(root, folder)));
      const options = ['--config', '.dependency-cruiser.cjs', '--output-type', 'err-long'];
      return node('dependency-cruiser/bin/dependency-cruiser.mjs', [...options, ...folders]);
    },
  },
  { name: 'protobuf lint', run: () => tool(buf, ['lint']) },
  {
    name: 'protobuf wire compatibility',
    run: () => tool(buf, ['breaking', 'proto', '--against', protoBaseline, '--config', 'buf.yaml']),
  },
  { name: 'generated code', run: checkGenerated },
  {
    name: 'gofmt',
    run: async () => {
      const files = (await go(['-l', '.'], 'gofmt')).trim();
      if (files) throw new Error(`run \`npm run format\`:\n${files}`);
    },
  },
  { name: 'go vet', needs: GO_AT_ONCE, run: () => go(['vet', ...GO_BUILD_FLAGS, ...GO_TEST_TAGS, './...']) },
];

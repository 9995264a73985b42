// Lines of the documents, run as they stand there: a block of shell lines below `<!-- run: name -->`.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../bin/lib/root.ts';

export { root };

const TIMEOUT_MS = 240_000;

export const read = (file: string) => readFileSync(join(root, file), 'utf8');

const markdownIn = (folder: string, recursive = false) =>
  (readdirSync(join(root, folder), { recursive }) as string[])
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));

/** Written by people: pages at the root, in docs/ and beside the code. */
export const DOCUMENTS: readonly string[] = [
  ...markdownIn('.'),
  ...markdownIn('docs', true).filter((file) => !file.startsWith('docs/reference/')),
  'agents/edge/README.md',
  'agents/caddy/README.md',
  'client/README.md',
  'console/README.md',
];

/** The block with that name. Several names: one after the other, as someone would who reads on. */
export function documentLines(file: string, ...names: string[]): string {
  const text = read(file);
  const blocks = names.map((name) => {
    const found = new RegExp(`^( *)<!-- run: ${name} -->\n *\`\`\`sh\n([\\s\\S]*?)\n *\`\`\``, 'm').exec(text);
    // Inside a list the block is indented.
    const lines = found && found[2]!.replaceAll(new RegExp(`^${found[1]}`, 'gm'), '');
    if (!lines) throw new Error(`${file} has no block ${name}`);
    return lines;
  });
  return blocks.join('\n');
}

/** Names of the blocks of a document. */
export function documentBlocks(file: string): string[] {
  return [...read(file).matchAll(/<!-- run: ([a-z-]+) -->/g)].map(([, name]) => name!);
}

export interface Shown {
  /** Both streams, for a failed test. */
  output: string;
  /** Lines of standard output. */
  lines: string[];
}

/** Runs lines in a shell that ends at the first failing one; throws with everything that was shown then. */
export async function runShell(script: string, env: NodeJS.ProcessEnv, cwd = root): Promise<Shown> {
  const shell = spawn('sh', ['-eu', '-c', script], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
  });
  const [stdout, stderr, status] = await Promise.all([
    shell.stdout.setEncoding('utf8').toArray(),
    shell.stderr.setEncoding('utf8').toArray(),
    new Promise((resolve) => shell.on('exit', (code, signal) => resolve(code ?? signal))),
  ]);
  const output = `${stdout.join('')}\n--- errors\n${stderr.join('')}`;
  if (status !== 0) throw new Error(`the lines failed with ${status}\n${output}`);
  return { output, lines: stdout.join('').trim().split('\n') };
}

// A machine that is installed by the command of a console: the package of a node, the installer, what it leaves.
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../bin/lib/root.ts';

export interface Ran {
  code: number | null;
  output: string;
}

/** Runs a line of shell; never throws for its exit code. */
export function shell(line: string, env: NodeJS.ProcessEnv = {}, timeoutMs = 150_000): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', line], {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    child.on('error', reject);
    // A node that kept the pipes of its installer would keep whoever waits for them, too.
    child.on('close', (code) => resolve({ code, output }));
  });
}

/** Makes a package of this machine's processor; resolves with its SHA-256. */
export async function packageNode(out: string, version: string, ...more: string[]): Promise<string> {
  const args = [join(root, 'bin', 'package-node.ts'), '--out', out, '--version', version, ...more];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 170_000 });
  return stdout.slice(0, 64);
}

/** A machine of its own: a folder in which the installer finds nothing of this one. */
export class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), 'machine-'));
  readonly options: string;

  constructor(listen: string) {
    this.options = `--root ${this.folder} --no-systemd --http-listen ${listen} --https-listen none --kernel-bans off`;
  }

  /** Runs the line that a console made, below the folder. */
  run(installCommand: string, more = ''): Promise<Ran> {
    return shell(`${installCommand} ${this.options} ${more}`);
  }

  /** The command that an installation leaves. */
  node(words: string): Promise<Ran> {
    return shell(`${this.path('usr/local/bin/svc-edge')} ${words}`);
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  /** Everything that is there, files and folders. */
  content(): string[] {
    return (readdirSync(this.folder, { recursive: true }) as string[]).sort();
  }

  identity(): Record<string, string> {
    return JSON.parse(readFileSync(this.path('var/lib/svc-edge/identity.json'), 'utf8')) as Record<string, string>;
  }

  /** Id of the node's process; undefined when it has none. */
  pid(): number | undefined {
    const file = this.path('run/svc-edge.pid');
    return existsSync(file) ? Number(readFileSync(file, 'utf8')) : undefined;
  }

  log(): string {
    const file = this.path('var/log/svc-edge.log');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  /** Stops what runs and deletes everything. */
  async remove(installer: string): Promise<void> {
    await shell(`${installer} --uninstall --purge ${this.options}`);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

// The attack kit (bench/attack) as a program of benchmarks and tests.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { buildGo } from './servers.ts';

const root = path.resolve(import.meta.dirname, '../..');
let built: string | undefined;

/** The binary, built by the first call. */
export function attackBinary(): string {
  if (!built) {
    mkdirSync(path.join(root, '.cache'), { recursive: true });
    built = buildGo(path.join(root, 'bench/attack'), path.join(root, '.cache/attack'));
  }
  return built;
}

/** What happened in one second; counts by the answer's status and challenge or code, such as "403 js". */
export interface AttackSecond {
  second: number;
  phase: 'before' | 'flood' | 'after';
  flood: { sent: number; skipped: number; failed: number; answers: Record<string, number> | null };
  visitors: {
    visits: number;
    failed: number;
    failures: Record<string, number> | null;
    challenges: Record<string, number> | null;
    tookMs: number[] | null;
  };
}

/** Plays an attack and gives each of its seconds as it ends. Stops it when the caller stops listening. */
export async function* attack(options: Record<string, string | number>, cpus?: string): AsyncGenerator<AttackSecond> {
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const command = [...(cpus ? ['taskset', '-c', cpus] : []), attackBinary(), ...args, '--json'];
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2000);
  });
  const ended = new Promise<number>((resolve) => {
    child.on('close', (code) => resolve(code ?? 1));
    child.on('error', () => resolve(1));
  });
  try {
    for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line) as AttackSecond;
    const code = await ended;
    if (code !== 0) throw new Error(`the attack ended with ${code}: ${errors}`);
  } finally {
    if (child.exitCode === null) child.kill('SIGTERM');
    await ended;
  }
}

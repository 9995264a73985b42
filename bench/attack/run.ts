// `npm run bench -- attack OPTIONS`: builds the attack kit and hands over to it.
import { spawn } from 'node:child_process';
import { attackBinary } from '../lib/attack.ts';

export async function run(args: readonly string[]): Promise<number> {
  const child = spawn(attackBinary(), args, { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? 1));
  });
}

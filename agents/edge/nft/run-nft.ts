// Runs the nft tool. One call is one transaction: all of the script or nothing.
import { spawn } from 'node:child_process';
import { childEnvironment } from '../supervise/child-environment.ts';

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_ERROR_BYTES = 2000;

export class NftError extends Error {
  override name = 'NftError';
}

/** Output of `nft <args>` with `script` on its input. Throws NftError with the tool's first error lines. */
export function runNft(nftBin: string, args: readonly string[], script = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(nftBin, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: childEnvironment(),
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    let output = '';
    let problem = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < MAX_OUTPUT_BYTES) output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (problem.length < MAX_ERROR_BYTES) problem += text.slice(0, MAX_ERROR_BYTES - problem.length);
    });
    // nft may end before it has read everything; its exit code tells what happened.
    child.stdin.on('error', () => child.stdin.destroy());
    child.once('error', (error) => reject(new NftError(`${nftBin} cannot be run: ${error.message}`, { cause: error })));
    child.once('close', (code, signal) => {
      if (code === 0) resolve(output);
      else reject(new NftError(problem.trim().split('\n')[0] || `nft ended with ${signal ?? `code ${code}`}`));
    });
    child.stdin.end(script);
  });
}

/** Runs a script given as lines as one transaction. */
export async function runScript(nftBin: string, lines: readonly string[]): Promise<void> {
  if (lines.length > 0) await runNft(nftBin, ['-f', '-'], `${lines.join('\n')}\n`);
}

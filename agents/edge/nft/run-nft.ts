// Runs the nft tool. One call is one transaction: all of the script or nothing.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { open, unlink } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { childEnvironment } from '../supervise/child-environment.ts';

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_ERROR_BYTES = 2000;
const STREAM_NICE = 10;

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

/**
 * Gives `line` each line that `nft <args>` prints. Throws what `line` throws, and when `signal` ends it. nft writes each word by
 * itself, 900,000 for 100,000 elements: into a file that takes 1 s, into a pipe to this process 10 s.
 */
export async function streamNft(
  nftBin: string,
  args: readonly string[],
  line: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const path = join(tmpdir(), `svc-nft-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
    await printTo(file.fd, nftBin, args, signal);
    for await (const text of file.readLines({ start: 0, autoClose: false })) line(text);
    signal.throwIfAborted();
  } finally {
    await file.close();
  }
}

function printTo(fd: number, nftBin: string, args: readonly string[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(nftBin, args, {
      stdio: ['ignore', fd, 'pipe'],
      env: childEnvironment(),
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
      signal,
    });
    let problem = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      if (problem.length < MAX_ERROR_BYTES) problem += text.slice(0, MAX_ERROR_BYTES - problem.length);
    });
    child.once('error', (error) => reject(new NftError(`${nftBin} cannot be run: ${error.message}`, { cause: error })));
    child.once('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new NftError(problem.trim().split('\n')[0] || `nft ended with ${signal ?? `code ${code}`}`));
    });
    if (child.pid !== undefined) lowerPriority(child.pid);
  });
}

/** Serving requests goes before. A process that has ended needs no priority. */
function lowerPriority(pid: number): void {
  try {
    setPriority(pid, STREAM_NICE);
  } catch (error) {
    if (!['ESRCH', 'EPERM', 'EACCES'].includes((error as { info?: { code?: string } }).info?.code ?? '')) throw error;
  }
}

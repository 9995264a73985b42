// What the commands of backups have in common: progress, cancelling, exit codes.
import { readFile } from 'node:fs/promises';
import { BackupError } from '../../../runtime/backup/backup-error.ts';
import { parseSecretKey } from '../../../runtime/backup/keys.ts';
import { createSealer, type Sealer } from '../../../runtime/sealer.ts';
import { Refusal, report, say } from '../progress.ts';

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const SAY_EVERY_MS = 1000;

/** The command line means nothing; exit status 2. */
export class WrongUsage extends Refusal {}

/**
 * Runs a command. A signal cancels it, and it ends when nothing is left of it; exit status 0 done, 1 not done, 2 wrong
 * usage, 129, 130 or 143 canceled.
 */
export async function runCommand(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const abort = new AbortController();
  let canceled = 0;
  for (const [name, status] of Object.entries(SIGNALS)) {
    process.on(name, () => {
      if (canceled === 0) say('canceling …');
      canceled = status;
      abort.abort(new Refusal('canceled'));
    });
  }
  try {
    await work(abort.signal);
  } catch (error) {
    if (canceled > 0) say('canceled');
    else report(asRefusal(error));
    process.exitCode = canceled || (error instanceof WrongUsage ? 2 : 1);
  } finally {
    process.stdin.destroy();
  }
}

function asRefusal(error: unknown): unknown {
  if (error instanceof BackupError) return new Refusal(error.message);
  const { code, message } = error as { code?: string; message?: string };
  // PostgreSQL's own: its message says enough, and a stack of ours nothing.
  if (code && /^[0-9A-Z]{5}$/.test(code)) return new Refusal(`The database refused (${code}): ${message}`);
  return error;
}

/** A line now and then, and always the first of a phase. */
export function progressLines(): (phase: string, detail: string) => void {
  let phase = '';
  let said = 0;
  return (now, detail) => {
    if (now === phase && Date.now() - said < SAY_EVERY_MS) return;
    phase = now;
    said = Date.now();
    say(`  ${now}: ${detail}`);
  };
}

/** DATABASE_DIRECT_URL wins: a backup is one long transaction. */
export function databaseUrl(help: string): string {
  const url = process.env.DATABASE_DIRECT_URL || process.env.DATABASE_URL;
  if (!url) throw new WrongUsage(`DATABASE_URL is missing.\n\n${help}`);
  return url;
}

/** The secret key in a file; null without one. */
export async function secretKeyOf(file: string | undefined) {
  if (file === undefined) return null;
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new Refusal(`The key file cannot be read (${(error as NodeJS.ErrnoException).code}): ${file}`);
  }
  return parseSecretKey(text);
}

/** The master keys of the environment; null without one. Their values appear nowhere. */
export function sealerOf(env: NodeJS.ProcessEnv): Sealer | null {
  const key = (name: string): Buffer | null => {
    const text = env[name];
    if (!text) return null;
    const bytes = Buffer.from(text, 'base64');
    if (bytes.length !== 32) throw new Refusal(`${name} must be 32 bytes as base64.`);
    return bytes;
  };
  const current = key('SVC_MASTER_KEY');
  return current && createSealer(current, key('SVC_MASTER_KEY_PREVIOUS'));
}

export function sizeOf(bytes: number): string {
  return bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

// The commands of backups as processes, which tests cancel and kill.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { root } from '../../bin/lib/root.ts';
import { generateBackupKeys } from '../../runtime/backup/keys.ts';
import { servers } from './servers.ts';

export interface EndedCommand {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Command {
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** Sends the signal as soon as the text has been said. */
  at?: { said: string; signal: NodeJS.Signals };
}

/** Runs `bin/backup.ts` or `bin/restore.ts` to its end. */
export function runCommand(script: 'backup' | 'restore', { args, env = {}, at }: Command): Promise<EndedCommand> {
  const child = spawn(process.execPath, [join(root, 'bin', `${script}.ts`), ...args], {
    cwd: root,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr, sent] = ['', '', false];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    if (!at || sent || !stderr.includes(at.said)) return;
    sent = true;
    child.kill(at.signal);
  });
  return new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr })));
}

/** A new pair of keys as text. */
export const newBackupKeys = generateBackupKeys;

/** Files of a folder that have the name of a backup. */
export const backupsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.svcbackup'))
    .map((name) => join(folder, name));

export async function query<Row extends object>(databaseUrl: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

/** A database without a table. */
export async function emptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const { databaseUrl } = await servers();
  const name = `empty_${randomBytes(6).toString('hex')}`;
  await query(databaseUrl, `create database ${name}`);
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => void (await query(databaseUrl, `drop database if exists ${name} with (force)`)),
  };
}

// What must be there before anything starts, told as one list with the command that mends each point.
import { existsSync, mkdirSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { caddyPath, findGo } from './caddy.ts';
import { findCommand } from './commands.ts';
import { installCommand, mayInstall } from './debian.ts';
import { Refusal } from './progress.ts';
import { findRedis, redisInstallCommand } from './redis.ts';

export interface Needs {
  /** Folder the data goes to. */
  dataDir: string;
  redis: boolean;
  caddy: boolean;
}

const DISK_GIB = 3;
const GIB = 2 ** 30;

/** Throws a Refusal that lists everything missing. */
export async function preflight(needs: Needs): Promise<void> {
  const problems: string[] = [];
  try {
    mkdirSync(needs.dataDir, { recursive: true, mode: 0o711 });
  } catch (error) {
    throw new Refusal(`the data folder cannot be created: ${(error as Error).message}`);
  }
  const { bavail, bsize } = await statfs(needs.dataDir);
  const free = (bavail * bsize) / GIB;
  if (free < DISK_GIB) {
    problems.push(
      `${needs.dataDir} has ${free.toFixed(1)} GB of free disk space, and ${DISK_GIB} GB are needed:\n    df -h ${needs.dataDir}`,
    );
  }
  if (needs.caddy && !existsSync(caddyPath())) {
    const found = await findGo();
    if ('problem' in found) {
      problems.push(
        `${found.problem} (it builds the edge). Download it from https://go.dev/dl/, unpack it, then:\n    export PATH=$PATH:/usr/local/go/bin`,
      );
    }
  }
  if (needs.caddy && !findCommand('flock'))
    problems.push(`flock is missing (the agent uses it for locks):\n    ${installCommand(['util-linux'])}`);
  if (needs.redis && !findRedis() && !mayInstall())
    problems.push(`Redis or Valkey is missing:\n    ${redisInstallCommand()}`);
  if (problems.length > 0)
    throw new Refusal(`Requirements are missing:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`);
}

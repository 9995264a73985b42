// PostgreSQL refuses to run as root. A launcher started by root therefore runs it as another user, who must be able to
// reach the programs and the data folder: a folder above them that only root may enter needs a way round.

import { randomBytes } from 'node:crypto';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Refusal, say } from './progress.ts';

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

const ACCOUNTS = ['postgres', 'nobody'];
const SHARED_STATE = '/var/lib/edge-delivery-console';

/** The account servers run as when this process is root, else undefined. */
export function serverAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const wanted of ACCOUNTS) {
    for (const line of lines) {
      const [name, , uid, gid] = line.split(':');
      if (name === wanted && uid && gid) return { name, uid: Number(uid), gid: Number(gid) };
    }
  }
  throw new Refusal(
    'PostgreSQL cannot run as root, and no other account exists for it. Create one:\n  useradd --system postgres',
  );
}

/** Whether the account may enter every folder on the way to `path`. */
export function canReach(account: Account, path: string): boolean {
  for (let folder = path; ; folder = dirname(folder)) {
    if (existsSync(folder)) {
      const { mode, uid, gid } = statSync(folder);
      const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
      if (statSync(folder).isDirectory() && (mode & bit) === 0) return false;
    }
    if (dirname(folder) === folder) return true;
  }
}

/** A folder the account can reach with the same content as `source`, which is copied once per `key`. */
export function reachablePrograms(account: Account | undefined, source: string, key: string): string {
  if (!account || canReach(account, source)) return source;
  const target = join(SHARED_STATE, key);
  if (existsSync(target)) return target;
  say(`  ${account.name} cannot read ${source}: copying the programs to ${target}`);
  mkdirSync(SHARED_STATE, { recursive: true, mode: 0o755 });
  const temporary = `${target}.${process.pid}`;
  cpSync(source, temporary, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}

/**
 * The folder that holds a server's data: `wanted` itself, or, where the account cannot reach that, one outside whose place
 * is kept in the file `<wanted>.elsewhere`.
 */
export function reachableData(account: Account | undefined, wanted: string): string {
  const pointer = `${wanted}.elsewhere`;
  if (existsSync(pointer)) {
    const place = readFileSync(pointer, 'utf8').trim();
    if (dirname(place) === SHARED_STATE && existsSync(place)) return place;
  }
  if (!account || existsSync(wanted) || canReach(account, dirname(wanted))) return wanted;
  mkdirSync(SHARED_STATE, { recursive: true, mode: 0o755 });
  const place = join(SHARED_STATE, `data-${randomBytes(6).toString('hex')}-${basename(wanted)}`);
  mkdirSync(place, { mode: 0o700 });
  chownSync(place, account.uid, account.gid);
  writeFileSync(pointer, `${place}\n`, { mode: 0o600 });
  say(`  ${account.name} cannot enter ${dirname(wanted)}: the database is stored in ${place}`);
  return place;
}

/** Removes what `reachableData` placed outside for servers whose pointers lie in `folder`. */
export function removeOutsideData(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    if (!name.endsWith('.elsewhere')) continue;
    const place = readFileSync(join(folder, name), 'utf8').trim();
    if (dirname(place) === SHARED_STATE) rmSync(place, { recursive: true, force: true });
  }
}

/** Gives a folder and all in it to the account. */
export function giveTo(account: Account | undefined, folder: string): void {
  if (!account || statSync(folder).uid === account.uid) return;
  for (const name of readdirSync(folder, { recursive: true }) as string[])
    chownSync(join(folder, name), account.uid, account.gid);
  chownSync(folder, account.uid, account.gid);
}

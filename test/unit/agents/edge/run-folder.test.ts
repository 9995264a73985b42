// Where socket and status lie: found again from the state folder alone, in a tmpfs, and never in a folder of somebody else.

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, realpathSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { existingRunFolders, openRunFolder, removeRunFolder } from '../../../../agents/edge/run-folder.ts';
import { temporaryFolder } from '../helpers/folder.ts';

const MODULE = join(import.meta.dirname, '../../../../agents/edge/run-folder.ts');
const isRoot = process.getuid!() === 0;

function state(t: Parameters<typeof temporaryFolder>[0]): string {
  const folder = join(temporaryFolder(t), 'state');
  mkdirSync(folder, { mode: 0o700 });
  t.teardown(() => {
    if (existsSync(folder)) for (const found of existingRunFolders(folder)) removeRunFolder(folder, found);
  });
  return folder;
}

test('a state folder leads to one private folder, by whatever path it is named', (t) => {
  const stateDir = state(t);
  const folder = openRunFolder(stateDir);
  t.is(statSync(folder).mode & 0o777, 0o700);
  t.is(openRunFolder(stateDir), folder);
  const link = `${stateDir}.link`;
  symlinkSync(stateDir, link);
  t.is(realpathSync(openRunFolder(link)), realpathSync(folder));
  t.deepEqual(existingRunFolders(stateDir), [folder]);
  t.not(openRunFolder(state(t)), folder);
  removeRunFolder(stateDir, folder);
  t.false(existsSync(folder));
});

test('a folder that is given is taken, and is not removed with the node', (t) => {
  const stateDir = state(t);
  const given = join(temporaryFolder(t), 'given');
  t.is(openRunFolder(stateDir, given), given);
  t.is(statSync(given).mode & 0o777, 0o700);
  t.deepEqual(existingRunFolders(stateDir, given), [given]);
  removeRunFolder(stateDir, given);
  t.true(existsSync(given));
  t.throws(() => openRunFolder(stateDir, `/tmp/${'x'.repeat(100)}`), { name: 'UsageError' });
});

/** What a user without a session of his own gets, in a process that becomes his. */
function openAs(uid: number, stateDir: string): string {
  const script = `import { openRunFolder } from ${JSON.stringify(MODULE)};
    process.setgroups([]); process.setgid(${uid}); process.setuid(${uid});
    process.stdout.write(openRunFolder(process.argv[1]));`;
  return execFileSync(process.execPath, ['--input-type=module', '-e', script, stateDir], { encoding: 'utf8' });
}

(isRoot ? test : test.skip)('a name that another user took first costs the tmpfs, not the start', (t) => {
  const uid = 61_000 + (process.pid % 1000);
  const shared = `/dev/shm/svc-edge-${uid}`;
  const outer = temporaryFolder(t);
  chmodSync(outer, 0o755);
  const stateDir = join(outer, 'state');
  mkdirSync(stateDir, { mode: 0o700 });
  chownSync(stateDir, uid, uid);
  t.teardown(() => rmSync(shared, { recursive: true, force: true }));
  t.regex(openAs(uid, stateDir), new RegExp(`^${shared}/[0-9a-f]{16}$`));
  t.is(existingRunFolders(stateDir).length, 1);

  rmSync(shared, { recursive: true });
  mkdirSync(shared, { mode: 0o777 });
  chmodSync(shared, 0o777);
  t.is(openAs(uid, stateDir), join(stateDir, 'run'));
  t.deepEqual(existingRunFolders(stateDir), [join(stateDir, 'run')]);

  rmSync(shared, { recursive: true });
  const trap = join(outer, 'trap');
  mkdirSync(trap, { mode: 0o700 });
  chownSync(trap, uid, uid);
  symlinkSync(trap, shared);
  t.is(openAs(uid, stateDir), join(stateDir, 'run'));
});

// The state folder of an older version, in which journals and keys lay beside the private key.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { adoptOldLayout } from '../../../../agents/edge/old-layout.ts';
import { edgePaths } from '../../../../agents/edge/paths.ts';
import { createLog } from '../../../../agents/kit/log.ts';
import { temporaryFolder } from '../helpers/folder.ts';

const NAMES = ['bans.journal', 'challenge-keys.json', 'config.journal', 'security.journal'];
const log = createLog('info', {}, () => undefined);

function oldState(t: ExecutionContext): string {
  const folder = temporaryFolder(t);
  for (const name of [...NAMES, 'node.key', 'identity.json', 'stats.json'])
    writeFileSync(join(folder, name), `old ${name}`);
  return folder;
}

test('journals and keys of an older version move into the folder that Caddy may read, and nothing else does', (t) => {
  const folder = oldState(t);
  adoptOldLayout(edgePaths(folder), log);
  t.deepEqual(readdirSync(folder).sort(), ['edge', 'identity.json', 'node.key', 'stats.json']);
  t.deepEqual(readdirSync(join(folder, 'edge')).sort(), NAMES);
  for (const name of NAMES) t.is(readFileSync(join(folder, 'edge', name), 'utf8'), `old ${name}`);
  t.is(statSync(join(folder, 'edge')).mode & 0o777, 0o700);
});

test('a move that a crash cut short is finished by the next start', (t) => {
  const folder = oldState(t);
  mkdirSync(join(folder, 'edge'));
  renameSync(join(folder, 'config.journal'), join(folder, 'edge/config.journal'));
  writeFileSync(join(folder, 'bans.journal.next'), 'half');
  adoptOldLayout(edgePaths(folder), log);
  t.deepEqual(readdirSync(join(folder, 'edge')).sort(), NAMES);
  t.is(readFileSync(join(folder, 'edge/config.journal'), 'utf8'), 'old config.journal');
  t.false(existsSync(join(folder, 'bans.journal.next')));
});

test('a file in the old place is of an older version that ran in between, and replaces the one in the new place', (t) => {
  const folder = oldState(t);
  mkdirSync(join(folder, 'edge'));
  writeFileSync(join(folder, 'edge/config.journal'), 'of before');
  adoptOldLayout(edgePaths(folder), log);
  t.is(readFileSync(join(folder, 'edge/config.journal'), 'utf8'), 'old config.journal');
});

test('a new folder stays empty, and a second call changes nothing', (t) => {
  const folder = temporaryFolder(t);
  adoptOldLayout(edgePaths(folder), log);
  writeFileSync(join(folder, 'edge/config.journal'), 'new');
  adoptOldLayout(edgePaths(folder), log);
  t.deepEqual(readdirSync(folder), ['edge']);
  t.is(readFileSync(join(folder, 'edge/config.journal'), 'utf8'), 'new');
});

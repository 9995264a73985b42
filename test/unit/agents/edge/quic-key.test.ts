import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ensureQuicKey } from '../../../../agents/edge/caddy/quic-key.ts';
import { temporaryFolder } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';

test('the key is made once, for its owner alone, and again where it is none', (t) => {
  const path = join(temporaryFolder(t), 'quic.key');
  const { log, lines } = memoryLog();
  ensureQuicKey(path, log);
  const made = readFileSync(path);
  t.is(made.length, 32);
  t.is(statSync(path).mode & 0o777, 0o600);
  ensureQuicKey(path, log);
  t.deepEqual(readFileSync(path), made);
  writeFileSync(path, 'short');
  ensureQuicKey(path, log);
  t.is(readFileSync(path).length, 32);
  t.deepEqual(lines, []);
});

test('a folder that cannot be written to keeps nobody from serving', (t) => {
  const { log, lines } = memoryLog();
  ensureQuicKey(join(temporaryFolder(t), 'missing', 'quic.key'), log);
  t.is(lines.length, 1);
});

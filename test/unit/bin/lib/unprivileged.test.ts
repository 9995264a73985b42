import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { canReach } from '../../../../bin/lib/unprivileged.ts';

const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 };

function folder(mode: number): string {
  const top = mkdtempSync(join(tmpdir(), 'reach-'));
  mkdirSync(join(top, 'inside'));
  chmodSync(top, mode);
  return join(top, 'inside');
}

test('a folder only its owner may enter cannot be passed by another account', (t) => {
  t.false(canReach(stranger, folder(0o700)));
  t.false(canReach(stranger, folder(0o750)));
});

test('passing needs no right to list', (t) => {
  t.true(canReach(stranger, folder(0o711)));
  t.true(canReach(stranger, folder(0o755)));
});

test('the owner and the group are judged by their own bits', (t) => {
  const account = (uid: number, gid: number) => ({ name: 'somebody', uid, gid });
  const [uid, gid] = [process.getuid!(), process.getgid!()];
  t.true(canReach(account(uid, 54_321), folder(0o700)));
  t.true(canReach(account(54_321, gid), folder(0o710)));
  t.false(canReach(account(54_321, gid), folder(0o701)));
});

test('what does not exist yet is judged by the folders above it', (t) => {
  t.false(canReach(stranger, join(folder(0o700), 'data', 'demo', 'postgres')));
  t.true(canReach(stranger, join(folder(0o711), 'data', 'demo', 'postgres')));
});

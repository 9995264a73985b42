import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { canReach } from '../../../../bin/lib/unprivileged.ts';
import { temporaryFolder } from '../../../helpers/temporary-folder.ts';

const stranger = { name: 'stranger', uid: 54_321, gid: 54_321 };

function folder(t: ExecutionContext, mode: number): string {
  const top = temporaryFolder(t);
  mkdirSync(join(top, 'inside'));
  chmodSync(top, mode);
  return join(top, 'inside');
}

test('a folder only its owner may enter cannot be passed by another account', (t) => {
  t.false(canReach(stranger, folder(t, 0o700)));
  t.false(canReach(stranger, folder(t, 0o750)));
});

test('passing needs no right to list', (t) => {
  t.true(canReach(stranger, folder(t, 0o711)));
  t.true(canReach(stranger, folder(t, 0o755)));
});

test('the owner and the group are judged by their own bits', (t) => {
  const account = (uid: number, gid: number) => ({ name: 'somebody', uid, gid });
  const [uid, gid] = [process.getuid!(), process.getgid!()];
  t.true(canReach(account(uid, 54_321), folder(t, 0o700)));
  t.true(canReach(account(54_321, gid), folder(t, 0o710)));
  t.false(canReach(account(54_321, gid), folder(t, 0o701)));
});

test('what does not exist yet is judged by the folders above it', (t) => {
  t.false(canReach(stranger, join(folder(t, 0o700), 'data', 'demo', 'postgres')));
  t.true(canReach(stranger, join(folder(t, 0o711), 'data', 'demo', 'postgres')));
});

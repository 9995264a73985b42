import test from 'ava';
import { Passwords } from '../../../../runtime/passwords.ts';
import { hashBackupCode, hashBackupCodes, newBackupCodes } from '../../../../services/auth/backup-codes.ts';

test('there are ten, of letters and digits that nobody mistakes', (t) => {
  const codes = newBackupCodes();
  t.is(codes.length, 10);
  t.is(new Set(codes).size, 10);
  for (const code of codes) t.regex(code, /^[2-9a-hj-km-np-z]{5}-[2-9a-hj-km-np-z]{5}$/);
});

test('a code is found by its hash, however it is typed, with one derivation', async (t) => {
  let derived = 0;
  const passwords = new Passwords(() => derived++);
  const [first, second] = (await hashBackupCodes(passwords, ['abcde-fghjk', '23456-789ab'])) as [string, string];
  t.is(derived, 2);
  for (const typed of ['23456-789ab', '23456789AB', ' 23456 789ab ', '2-3-4-5-6-7-8-9-a-b']) {
    derived = 0;
    t.is(await hashBackupCode(passwords, typed, first), second, typed);
    t.is(derived, 1);
  }
  t.not(await hashBackupCode(passwords, '23456-789ac', first), second);
});

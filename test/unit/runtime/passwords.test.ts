import test from 'ava';
import { errorCodeOf } from '../../../contract/errors.ts';
import { Passwords } from '../../../runtime/passwords.ts';

test('a password matches its hash and no other', async (t) => {
  const passwords = new Passwords();
  const hash = await passwords.hash('correct horse battery');
  t.regex(hash, /^scrypt\$32768\$8\$1\$[A-Za-z0-9_-]{22}\$[A-Za-z0-9_-]{43}$/);
  t.true(await passwords.matches('correct horse battery', hash));
  t.false(await passwords.matches('correct horse batterY', hash));
  t.false(await passwords.matches('', hash));
});

test('equal passwords have different hashes', async (t) => {
  const passwords = new Passwords();
  t.not(await passwords.hash('correct horse battery'), await passwords.hash('correct horse battery'));
});

test('the same text in another Unicode form is the same password', async (t) => {
  const passwords = new Passwords();
  t.true(await passwords.matches('Caf\u0065\u0301 au lait', await passwords.hash('Caf\u00e9 au lait')));
});

test('nobody has no password, and that costs the derivation of one', async (t) => {
  const derived: string[] = [];
  const passwords = new Passwords(() => derived.push('one'));
  t.false(await passwords.matches('', undefined));
  t.is(derived.length, 1);
  await passwords.matches('x', await new Passwords().hash('y'));
  t.is(derived.length, 2);
});

test('a hash made with other parameters still matches', async (t) => {
  const { scryptSync } = await import('node:crypto');
  const salt = Buffer.alloc(16, 1);
  const key = scryptSync('correct horse battery', salt, 32, { N: 1024, r: 8, p: 2 });
  const hash = `scrypt$1024$8$2$${salt.toString('base64url')}$${key.toString('base64url')}`;
  t.true(await new Passwords().matches('correct horse battery', hash));
});

test('too many at once are asked to come again', async (t) => {
  const passwords = new Passwords();
  const answers = await Promise.allSettled(Array.from({ length: 24 }, () => passwords.matches('x', undefined)));
  const refused = answers.filter((answer) => answer.status === 'rejected');
  t.is(refused.length, 8);
  for (const { reason } of refused) t.is(errorCodeOf(reason), 'SERVICE_UNAVAILABLE');
});

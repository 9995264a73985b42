import { randomBytes } from 'node:crypto';
import test from 'ava';
import { createSealer } from '../../../runtime/sealer.ts';

const PLACE = { table: 'setting', column: 'value', row: '1' };
const sealer = createSealer(randomBytes(32));

test('a secret opens where it was sealed', (t) => {
  const secret = randomBytes(1000);
  t.deepEqual(sealer.open(sealer.seal(secret, PLACE), PLACE), secret);
  t.is(sealer.open(sealer.seal(Buffer.alloc(0), PLACE), PLACE).length, 0);
});

test('the same secret never looks the same', (t) => {
  t.not(sealer.seal(Buffer.from('x'), PLACE), sealer.seal(Buffer.from('x'), PLACE));
});

for (const place of [
  { ...PLACE, table: 'node' },
  { ...PLACE, column: 'other' },
  { ...PLACE, row: '2' },
  { table: 'setting', column: 'value","1', row: '' },
]) {
  test(`it does not open at ${JSON.stringify(place)}`, (t) => {
    t.throws(() => sealer.open(sealer.seal(Buffer.from('x'), PLACE), place));
  });
}

test('another master key does not open it, and says which one sealed it', (t) => {
  const other = createSealer(randomBytes(32));
  t.throws(() => other.open(sealer.seal(Buffer.from('x'), PLACE), PLACE), { message: new RegExp(sealer.fingerprint) });
});

test('any changed byte is noticed', (t) => {
  const sealed = sealer.seal(Buffer.from('secret'), PLACE);
  const head = sealed.slice(0, sealed.lastIndexOf('.') + 1);
  const bytes = Buffer.from(sealed.slice(head.length), 'base64url');
  for (let index = 0; index < bytes.length; index++) {
    const changed = Buffer.from(bytes);
    changed[index]! ^= 1;
    t.throws(() => sealer.open(head + changed.toString('base64url'), PLACE), undefined, `byte ${index}`);
  }
});

for (const sealed of ['', 'x', '1..', '2.x.y', '1.2.3.4']) {
  test(`${JSON.stringify(sealed)} is no sealed secret`, (t) => {
    t.throws(() => sealer.open(sealed, PLACE));
  });
}

test('the previous key opens and never seals', (t) => {
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];
  const before = createSealer(oldKey);
  const changing = createSealer(newKey, oldKey);
  const after = createSealer(newKey);
  t.is(changing.previousFingerprint, before.fingerprint);
  t.is(changing.open(before.seal(Buffer.from('x'), PLACE), PLACE).toString(), 'x');
  const sealed = changing.seal(Buffer.from('y'), PLACE);
  t.is(after.open(sealed, PLACE).toString(), 'y');
  t.throws(() => before.open(sealed, PLACE));
});

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import { CHALLENGE_KEYS } from '../../../../../agents/edge/keys/challenge-keys.ts';
import { KeyStore } from '../../../../../agents/edge/keys/key-store.ts';
import { SESSION_TICKET_KEYS } from '../../../../../agents/edge/keys/session-ticket-keys.ts';
import { ChallengeKeySchema } from '../../../../../proto/gen/svc/node/v1/security_pb.js';
import { temporaryFolder } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';
import { challengeKeys, sessionTicketKeys } from '../../helpers/security.ts';

function setUp(t: ExecutionContext) {
  const path = join(temporaryFolder(t), 'challenge-keys.json');
  const { log, lines } = memoryLog();
  return { path, lines, open: (clusterId = 'c') => new KeyStore({ kind: CHALLENGE_KEYS, path, clusterId, log }) };
}

test('keys come back after a restart from a file that only its owner can read', (t) => {
  const { path, open } = setUp(t);
  const store = open();
  t.is(store.version, 0n);
  t.true(store.replace(challengeKeys(3)));
  t.is(statSync(path).mode & 0o777, 0o600);
  t.deepEqual(open().keys, challengeKeys(3));
  t.is(open('another').keys, undefined, 'keys of another cluster are not used');
});

test('the same keys again are no change; the same version with other keys is one', (t) => {
  const { open } = setUp(t);
  const store = open();
  store.replace(challengeKeys(3));
  const { keys } = store;
  t.false(store.replace(challengeKeys(3)));
  t.is(store.keys, keys);
  t.true(store.replace({ ...challengeKeys(4), version: 3n }));
});

test('keys that cannot be used are refused and the ones held stay', (t) => {
  const { open } = setUp(t);
  const store = open();
  store.replace(challengeKeys(1));
  const bad = [
    { ...challengeKeys(2), version: 0n },
    { ...challengeKeys(2), current: undefined as never },
    { ...challengeKeys(2), next: create(ChallengeKeySchema, { id: 'a/b', secret: new Uint8Array(32) }) },
    { ...challengeKeys(2), next: create(ChallengeKeySchema, { id: 'short', secret: new Uint8Array(15) }) },
    { ...challengeKeys(2), previous: create(ChallengeKeySchema, { id: 'long', secret: new Uint8Array(257) }) },
  ];
  for (const keys of bad) t.throws(() => store.replace(keys));
  t.deepEqual(open().keys, challengeKeys(1));
});

test('a damaged file is said without quoting it, and the node starts without keys', (t) => {
  const { path, lines, open } = setUp(t);
  open().replace(challengeKeys(1));
  const text = readFileSync(path, 'utf8');
  const secret = Buffer.from(challengeKeys(1).current!.secret).toString('base64');
  t.true(text.includes(secret));
  for (const damaged of [
    '',
    'nonsense',
    text.slice(0, -9),
    text.replace('"version":"1"', '"version":"x"'),
    '{}',
    'null',
  ]) {
    writeFileSync(path, damaged);
    t.is(open().keys, undefined, damaged);
  }
  t.true(lines.length > 0);
  t.false(lines.some((line) => line.includes(secret.slice(0, 8))));
});

test('keys of session tickets have 32 bytes each; before the first rotation there is no former one', (t) => {
  const path = join(temporaryFolder(t), 'session-ticket-keys.json');
  const { log } = memoryLog();
  const open = () => new KeyStore({ kind: SESSION_TICKET_KEYS, path, clusterId: 'c', log });
  const store = open();
  t.true(store.replace(sessionTicketKeys(1)));
  t.is(open().keys!.previous.length, 0);
  for (const role of ['next', 'current', 'previous'] as const)
    t.throws(() => store.replace({ ...sessionTicketKeys(2), [role]: new Uint8Array(31) }));
  t.throws(() => store.replace({ ...sessionTicketKeys(2), current: new Uint8Array() }));
  t.true(store.replace(sessionTicketKeys(2)));
  t.deepEqual(open().keys, sessionTicketKeys(2));
  t.deepEqual(JSON.parse(readFileSync(path, 'utf8')), {
    clusterId: 'c',
    version: '2',
    keys: {
      next: Buffer.alloc(32, 4).toString('base64'),
      current: Buffer.alloc(32, 3).toString('base64'),
      previous: Buffer.alloc(32, 2).toString('base64'),
    },
  });
});

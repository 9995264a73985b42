// Keys that sign challenges and passes. Caddy reads their file when it starts (features/challenge/key_file.go).
import { create } from '@bufbuild/protobuf';
import {
  type ChallengeKey,
  ChallengeKeySchema,
  type ChallengeKeys,
  ChallengeKeysSchema,
} from '../../../proto/gen/svc/node/v1/security_pb.js';
import type { KeyKind } from './key-kind.ts';

const ROLES = ['next', 'current', 'previous'] as const;
const ID = /^[A-Za-z0-9_-]{1,32}$/;
const MIN_SECRET_BYTES = 16;
const MAX_SECRET_BYTES = 256;

type StoredKeys = Partial<Record<(typeof ROLES)[number], { id: string; secret: string }>>;

export const CHALLENGE_KEYS: KeyKind<ChallengeKeys> = {
  name: 'challenge keys',
  capability: undefined,
  problemOf(keys) {
    if (!keys.current) return 'there is no current key';
    for (const role of ROLES) {
      const key = keys[role];
      if (!key) continue;
      if (!ID.test(key.id)) return `the ID of the ${role} key is malformed`;
      if (key.secret.length < MIN_SECRET_BYTES || key.secret.length > MAX_SECRET_BYTES)
        return `the ${role} key has ${key.secret.length} bytes`;
    }
    return undefined;
  },
  toStored(keys): StoredKeys {
    const stored: StoredKeys = {};
    for (const role of ROLES) {
      const key = keys[role];
      if (key) stored[role] = { id: key.id, secret: Buffer.from(key.secret).toString('base64') };
    }
    return stored;
  },
  fromStored(version, stored) {
    const keys = create(ChallengeKeysSchema, { version });
    for (const role of ROLES) {
      const key = (stored as StoredKeys)[role];
      if (key) keys[role] = toKey(key);
    }
    return keys;
  },
  fetch: (channel, signal) => channel.getChallengeKeys({ signal }),
  push: (client, keys) => client.setChallengeKeys({ keys }),
  versionOf: (status) => status.challengeKeysVersion,
};

function toKey({ id, secret }: { id: string; secret: string }): ChallengeKey {
  return create(ChallengeKeySchema, { id, secret: new Uint8Array(Buffer.from(secret, 'base64')) });
}

// Kind "challenge-keys": marks rotations in the history of revisions. Keys and their roles travel outside entries; a
// cluster whose keys were never rotated has none.
import { create, toBinary } from '@bufbuild/protobuf';
import { ChallengeKeysMarkerSchema } from '../../proto/gen/svc/config/v1/protection_pb.js';
import type { EntryKind } from '../config/entry-kind.ts';
import { CHALLENGE_KEYS } from './challenge-key.ts';
import { FIRST_VERSION } from './cluster-keys.ts';

export const CHALLENGE_KEYS_KIND = 'challenge-keys';

export const challengeKeysKind: EntryKind = {
  kind: CHALLENGE_KEYS_KIND,
  compilerVersion: 1,
  bypass: true,
  onRollback: 'current',
  scope: 'cluster',
  ownerOf: () => null,
  async compile(sql, clusterId, ids) {
    const version = ids.includes('') ? await CHALLENGE_KEYS.version(sql, clusterId) : 0n;
    if (version <= FIRST_VERSION) return new Map();
    const body = toBinary(ChallengeKeysMarkerSchema, create(ChallengeKeysMarkerSchema, { version }));
    return new Map([['', { body, features: [], refs: [] }]]);
  },
  async *list() {
    yield [''];
  },
};

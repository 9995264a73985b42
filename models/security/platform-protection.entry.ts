// Kind "platform-protection": Under Attack on every site. Without an entry it is off.
import { create, toBinary } from '@bufbuild/protobuf';
import { PlatformProtectionSchema } from '../../proto/gen/svc/config/v1/protection_pb.js';
import type { EntryKind } from '../config/entry-kind.ts';
import { challengeOf } from './protection.entry.ts';
import { readProtectionSettings } from './protection-setting.ts';

export const PLATFORM_PROTECTION_KIND = 'platform-protection';

export const platformProtectionKind: EntryKind = {
  kind: PLATFORM_PROTECTION_KIND,
  compilerVersion: 1,
  bypass: true,
  onRollback: 'current',
  scope: 'platform',
  ownerOf: () => null,
  async compile(sql, _clusterId, ids) {
    if (!ids.includes('')) return new Map();
    const { underAttack, underAttackChallenge } = await readProtectionSettings(sql);
    if (!underAttack) return new Map();
    const message = { underAttack, underAttackChallenge: challengeOf(underAttackChallenge) };
    const body = toBinary(PlatformProtectionSchema, create(PlatformProtectionSchema, message));
    return new Map([['', { body, features: ['challenge-v1'], refs: [] }]]);
  },
  async *list() {
    yield [''];
  },
};

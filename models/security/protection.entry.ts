// Kind "protection": how a site challenges its visitors. Without an entry it has the defaults and no CC policy. What is
// switched off is left out: saving it changes nothing at the nodes.
import { create, toBinary } from '@bufbuild/protobuf';
import { DEFAULT_PROTECTION, type ProtectionOfSite } from '../../contract/resources/protection.ts';
import type { CcThresholds } from '../../contract/scalars/cc-thresholds.ts';
import { type ChallengeType as Challenge, LEVELS } from '../../contract/scalars/challenge.ts';
import {
  CcPolicySchema,
  CcThresholdsSchema,
  type ChallengeType,
  SiteProtectionSchema,
  type CcThresholds as ThresholdsMessage,
} from '../../proto/gen/svc/config/v1/protection_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';

export const PROTECTION_KIND = 'protection';

/** What is thrown against an attack: no rollback takes it back, and no canary holds it back. */
const SWITCH = ['underAttack', 'underAttackChallenge'] as const;

const SAVED = { table: 'site_protection', defaults: DEFAULT_PROTECTION };

export const protectionKind = siteSettingsKind<ProtectionOfSite>(PROTECTION_KIND, SAVED, {
  compilerVersion: 1,
  bypass: switched,
  compileSettings: (settings) => compileProtection(settings as ProtectionOfSite),
  keptOnRollback: SWITCH,
  compile: compileEach(SAVED, compileProtection),
});

/** Capabilities that a site with these settings needs, sorted. */
export function capabilitiesOfProtection({ underAttack, cc, logJa4 }: ProtectionOfSite): string[] {
  return [...(underAttack || cc.enabled ? ['challenge-v1'] : []), ...(logJa4 ? ['ja4-v1'] : [])];
}

function switched(stable: object, now: CompiledEntry | null): CompiledEntry | null | undefined {
  const before = { ...DEFAULT_PROTECTION, ...stable };
  const { underAttack, underAttackChallenge } = (now?.settings ?? DEFAULT_PROTECTION) as ProtectionOfSite;
  const settings = { ...before, underAttack, underAttackChallenge };
  return SWITCH.every((field) => settings[field] === before[field]) ? undefined : compileProtection(settings);
}

/** The entry of a site's settings; null for those that do what the defaults do. */
export function compileProtection(settings: ProtectionOfSite): CompiledEntry | null {
  const body = bytesOf(settings);
  if (Buffer.compare(body, DEFAULT_BYTES) === 0) return null;
  return { body, features: capabilitiesOfProtection(settings), refs: [], settings };
}

function bytesOf({ underAttack, underAttackChallenge, cc, ...rest }: ProtectionOfSite): Uint8Array {
  const { enabled, followTemplate, ...thresholds } = cc;
  const message = create(SiteProtectionSchema, {
    ...rest,
    underAttack,
    ...(underAttack ? { underAttackChallenge: challengeOf(underAttackChallenge) } : {}),
    ...(enabled
      ? { cc: create(CcPolicySchema, followTemplate ? { followTemplate } : { thresholds: thresholdsOf(thresholds) }) }
      : {}),
  });
  return toBinary(SiteProtectionSchema, message);
}

/** The number of a level is that of its type. */
export function challengeOf(type: Challenge): ChallengeType {
  return LEVELS.indexOf(type);
}

export function thresholdsOf(thresholds: CcThresholds): ThresholdsMessage {
  return create(CcThresholdsSchema, { ...thresholds, maxLevel: challengeOf(thresholds.maxLevel) });
}

const DEFAULT_BYTES = bytesOf(DEFAULT_PROTECTION);

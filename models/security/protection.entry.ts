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
import type { CompiledEntry, EntryKind } from '../config/entry-kind.ts';
import { siteOwner } from '../config/entry-owner.ts';

export const PROTECTION_KIND = 'protection';

const LIST_BATCH = 1000;

/** What is thrown against an attack: no rollback takes it back, and no canary holds it back. */
const SWITCH = ['underAttack', 'underAttackChallenge'] as const;

export const protectionKind: EntryKind = {
  kind: PROTECTION_KIND,
  compilerVersion: 1,
  bypass: switched,
  onRollback: 'restore',
  defaults: DEFAULT_PROTECTION,
  compileSettings: (settings) => compileProtection(settings as ProtectionOfSite),
  keptOnRollback: SWITCH,
  scope: 'cluster',
  ownerOf: siteOwner,
  async compile(sql, clusterId, ids) {
    const { rows } = await sql.raw<{ rows: { id: string; settings: Partial<ProtectionOfSite> }[] }>(
      'select site_id as id, settings from site_protection where cluster_id = ? and site_id = any(?)',
      [clusterId, ids as never],
    );
    const compiled = new Map<string, CompiledEntry>();
    for (const { id, settings } of rows) {
      const entry = compileProtection({ ...DEFAULT_PROTECTION, ...settings });
      if (entry) compiled.set(id, entry);
    }
    return compiled;
  },
  async *list(sql, clusterId) {
    let after = '';
    for (;;) {
      const { rows } = await sql.raw<{ rows: { id: string }[] }>(
        'select site_id as id from site_protection where cluster_id = ? and site_id > ? order by site_id limit ?',
        [clusterId, after, LIST_BATCH],
      );
      if (rows.length === 0) return;
      yield rows.map(({ id }) => id);
      after = rows.at(-1)!.id;
    }
  },
};

/** Capabilities that a site with these settings needs, sorted. */
export function featuresOfProtection({ underAttack, cc, logJa4 }: ProtectionOfSite): string[] {
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
  return { body, features: featuresOfProtection(settings), refs: [], settings };
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

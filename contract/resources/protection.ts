import Type, { type Static } from 'typebox';
import { CC_PRESETS, CHALLENGE_PRESETS } from '../presets.ts';
import { procedure, resource } from '../procedure.ts';
import { CcThresholds, ccThresholds } from '../scalars/cc-thresholds.ts';
import { ChallengeType } from '../scalars/challenge.ts';
import { ExpectedUpdatedAt, Id, Input, Nullable, Timestamp } from '../scalars/common.ts';

const settings = {
  underAttack: Type.Boolean({ description: 'Whether every visitor is challenged.' }),
  underAttackChallenge: { ...ChallengeType, description: 'Challenge of Under Attack.' },
  passTtlSeconds: Type.Integer({ minimum: 300, maximum: 86_400, description: 'How long a passed challenge counts.' }),
  powDifficulty: Type.Integer({
    minimum: 8,
    maximum: 24,
    description: 'Leading zero bits of a proof of work; each doubles the work.',
  }),
  powHighDifficulty: Type.Integer({
    minimum: 8,
    maximum: 26,
    description: 'The same of the high-difficulty proof of work; at least powDifficulty.',
  }),
  logJa4: Type.Boolean({ description: 'Whether sampled access logs record the TLS fingerprint JA4.' }),
};

const policy = {
  enabled: Type.Boolean({ description: 'Whether load raises the challenge level.' }),
  followTemplate: Type.Boolean({
    description: "Whether the template's thresholds count, now and when they change, instead of these.",
  }),
  ...ccThresholds,
};

export const CcPolicy = Type.Object(policy);

const ProtectionOfSite = Type.Object({ ...settings, cc: CcPolicy });
/** What a site has of its own. */
export type ProtectionOfSite = Static<typeof ProtectionOfSite>;

/** What a site has until it is changed. */
export const DEFAULT_PROTECTION: ProtectionOfSite = {
  underAttack: false,
  underAttackChallenge: 'js',
  ...CHALLENGE_PRESETS.standard,
  logJa4: false,
  cc: { enabled: false, followTemplate: false, ...CC_PRESETS.standard },
};

export const SiteProtection = Type.Object({
  siteId: Id,
  ...ProtectionOfSite.properties,
  ccTemplate: { ...CcThresholds, description: 'The template as it is now.' },
  effectiveCc: { ...Nullable(CcThresholds), description: 'Thresholds that nodes use; null while the policy is off.' },
  platformUnderAttack: Type.Boolean({ description: 'Whether Under Attack is on for all sites.' }),
  updatedAt: Timestamp,
});

export const protection = resource('protection', {
  get: procedure({
    method: 'GET',
    path: '/sites/{id}/protection',
    summary: 'Answers how a site challenges its visitors.',
    input: Input({ id: Id }),
    output: SiteProtection,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  update: procedure({
    method: 'PATCH',
    path: '/sites/{id}/protection',
    summary: 'Changes the given fields, inside cc as well; omitted ones keep their values.',
    input: Input({
      id: Id,
      ...Type.Partial(Type.Object(settings)).properties,
      cc: Type.Optional(Type.Partial(CcPolicy, { additionalProperties: false })),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: SiteProtection,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'site.protection_update',
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND', 'PROTECTION_POW_DIFFICULTY', 'UPDATED_AT_MISMATCH'],
  }),
});

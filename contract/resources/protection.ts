import Type, { type Static } from 'typebox';
import { CC_PRESETS, CHALLENGE_PRESETS } from '../presets.ts';
import { procedure, resource } from '../procedure.ts';
import { CcThresholds, ccThresholds } from '../scalars/cc-thresholds.ts';
import { ChallengeType } from '../scalars/challenge.ts';
import { ExpectedUpdatedAt, Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';

const settings = {
  underAttack: Type.Boolean({ description: 'Whether every client is challenged.' }),
  underAttackChallenge: { ...ChallengeType, description: 'Challenge used for Under Attack.' },
  passTtlSeconds: Type.Integer({
    minimum: 300,
    maximum: 86_400,
    description: 'How long a passed challenge is valid, in seconds.',
  }),
  powDifficulty: Type.Integer({
    minimum: 8,
    maximum: 24,
    description: 'Leading zero bits of the proof of work. Each bit doubles the work.',
  }),
  powHighDifficulty: Type.Integer({
    minimum: 8,
    maximum: 26,
    description: 'Leading zero bits of the high-difficulty proof of work; at least `powDifficulty`.',
  }),
  logJa4: Type.Boolean({
    description:
      'Whether sampled access logs record the TLS fingerprint JA4. Nodes keep no access logs yet, so the ' +
      'value is stored without effect.',
  }),
};

const policy = {
  enabled: Type.Boolean({ description: 'Whether load raises the challenge level.' }),
  followTemplate: Type.Boolean({
    description:
      'Whether the site follows the thresholds of the template, including later changes, instead of its own.',
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
  ccTemplate: { ...CcThresholds, description: 'Current template.' },
  effectiveCc: {
    ...Nullable(CcThresholds),
    description: 'Thresholds in effect on nodes; null: the policy is disabled.',
  },
  platformUnderAttack: Type.Boolean({ description: 'Whether Under Attack is on for all sites.' }),
  updatedAt: Timestamp,
});

/** What a rehearsal can be asked. */
export const REHEARSED = [
  'clients_banned',
  'bans_ended',
  'sites_raised',
  'sites_raised_by_errors',
  'paths_raised',
  'challenges',
  'bans_refused',
  'bans_unshared',
] as const;

export const Rehearsal = Type.Object({
  from: Timestamp,
  until: Timestamp,
  answers: Type.Array(
    Type.Object({
      question: OneOf(REHEARSED, {
        description:
          'clients_banned: clients above `ipQps`. bans_ended: automatic bans of the hour that would have ended ' +
          'by now. sites_raised, paths_raised: sites and paths above their threshold. sites_raised_by_errors: ' +
          'sites with an origin above the error threshold. challenges: factor by which challenges would have ' +
          'been harder. bans_refused: manual bans above the limit. bans_unshared: automatic bans that would ' +
          'have stayed on one node.',
      }),
      count: {
        ...Nullable(Type.Integer({ minimum: 0 })),
        description: 'Lower bound, because nodes report only the heaviest clients and paths; null: no data.',
      },
      were: {
        ...Nullable(Type.Integer({ minimum: 0 })),
        description: 'Actual number in that hour; null: unknown.',
      },
      lacks: {
        ...Nullable(OneOf(['no_events', 'no_reports', 'not_reported'])),
        description:
          'Why there is no count. no_events: no security event in the hour. no_reports: no node reported ' +
          'requests. not_reported: nodes never report this.',
      },
    }),
    { description: 'One entry per question that the change concerns; none if it changes nothing of that kind.' },
  ),
});

/** Everything of the protection that a save takes, each part optional. */
const change = {
  id: Id,
  ...Type.Partial(Type.Object(settings)).properties,
  cc: Type.Optional(Type.Partial(CcPolicy, { additionalProperties: false })),
};

export const protection = resource('protection', {
  get: procedure({
    method: 'GET',
    path: '/sites/{id}/protection',
    summary: 'Returns the protection settings of a site.',
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
    summary: 'Changes the given protection settings of a site, also inside `cc`; omitted fields keep their values.',
    input: Input({ ...change, expectedUpdatedAt: ExpectedUpdatedAt }),
    output: SiteProtection,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'site.protection_update',
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND', 'PROTECTION_POW_DIFFICULTY', 'UPDATED_AT_MISMATCH'],
  }),
  rehearse: procedure({
    method: 'POST',
    path: '/sites/{id}/protection/rehearse',
    summary:
      'Previews the effect that the change would have had in the last hour, from reports of nodes; changes ' +
      'nothing.',
    input: Input(change),
    output: Rehearsal,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND', 'PROTECTION_POW_DIFFICULTY'],
  }),
});

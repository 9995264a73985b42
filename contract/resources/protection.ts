import Type, { type Static } from 'typebox';
import { CC_PRESETS, CHALLENGE_PRESETS } from '../presets.ts';
import { procedure, resource } from '../procedure.ts';
import { CcThresholds, ccThresholds } from '../scalars/cc-thresholds.ts';
import { ChallengeType } from '../scalars/challenge.ts';
import { ExpectedUpdatedAt, Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';

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
  logJa4: Type.Boolean({
    description:
      'Whether sampled access logs record the TLS fingerprint JA4. Nodes keep no access logs yet: until they do this is kept, ' +
      'and nothing is recorded.',
  }),
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
          'clients_banned: clients above ipQps; bans_ended: automatic bans of the hour that had ended by now; ' +
          'sites_raised, paths_raised: sites and paths above their rate; sites_raised_by_errors: sites with an origin ' +
          'that failed too often; challenges: how much harder challenges were; bans_refused: manual bans beyond the limit; ' +
          'bans_unshared: automatic bans that had stayed on one node.',
      }),
      count: {
        ...Nullable(Type.Integer({ minimum: 0 })),
        description: 'At least so many, because nodes report the heaviest only; null: there is no data for that.',
      },
      were: {
        ...Nullable(Type.Integer({ minimum: 0 })),
        description: 'How many it were in truth; null where unknown.',
      },
      lacks: {
        ...Nullable(OneOf(['no_events', 'no_reports', 'not_reported'])),
        description:
          'Why there is no count. no_events: no security event of the hour tells; no_reports: no node has reported ' +
          'requests; not_reported: nodes never report it.',
      },
    }),
    { description: 'One for each question that the change is about; none when it changes nothing of that kind.' },
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
    summary: 'Answers what the change would have done in the last hour, by what nodes reported; changes nothing.',
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

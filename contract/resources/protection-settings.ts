import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { ChallengeType } from '../scalars/challenge.ts';
import { Input } from '../scalars/common.ts';

export const ProtectionSettings = Type.Object({
  underAttack: Type.Boolean({ description: 'Whether every visitor of every site is challenged.' }),
  underAttackChallenge: { ...ChallengeType, description: 'Challenge of Under Attack on all sites.' },
  eventRetentionDays: Type.Integer({
    minimum: 7,
    maximum: 365,
    description: 'How long security events are kept; default 30.',
  }),
});
export type ProtectionSettings = Static<typeof ProtectionSettings>;

export const DEFAULT_PROTECTION_SETTINGS: ProtectionSettings = {
  underAttack: false,
  underAttackChallenge: 'js',
  eventRetentionDays: 30,
};

export const protectionSettings = resource('settings.protection', {
  get: procedure({
    method: 'GET',
    path: '/settings/protection',
    summary: 'Answers the protection settings of all sites.',
    input: Input({}),
    output: ProtectionSettings,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  set: procedure({
    method: 'PUT',
    path: '/settings/protection',
    summary: 'Changes the protection settings of all sites; omitted fields keep their values.',
    input: Input(Type.Partial(ProtectionSettings).properties),
    output: ProtectionSettings,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'system.protection_update',
    idempotency: 'accepted',
    errors: [],
  }),
});

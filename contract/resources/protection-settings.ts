import Type, { type Static } from 'typebox';
import { resource } from '../procedure.ts';
import { ChallengeType } from '../scalars/challenge.ts';
import { settings } from '../settings.ts';

export const ProtectionSettings = Type.Object({
  underAttack: Type.Boolean({ description: 'Whether every client of every site is challenged.' }),
  underAttackChallenge: { ...ChallengeType, description: 'Challenge of Under Attack on all sites.' },
  eventRetentionDays: Type.Integer({
    minimum: 7,
    maximum: 365,
    description: 'Days that security events are kept. Default 30.',
  }),
});
export type ProtectionSettings = Static<typeof ProtectionSettings>;

export const DEFAULT_PROTECTION_SETTINGS: ProtectionSettings = {
  underAttack: false,
  underAttackChallenge: 'js',
  eventRetentionDays: 30,
};

export const protectionSettings = resource(
  'settings.protection',
  settings({
    path: '/settings/protection',
    of: {},
    reads: 'Returns the protection settings of all sites.',
    saves: 'Changes the protection settings of all sites; omitted fields keep their values.',
    change: Type.Partial(ProtectionSettings).properties,
    output: ProtectionSettings,
    saved: ProtectionSettings,
    audit: 'system.protection_update',
  }),
);

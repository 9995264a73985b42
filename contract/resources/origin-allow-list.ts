import Type from 'typebox';
import { resource } from '../procedure.ts';
import { settings } from '../settings.ts';

export const MAX_ALLOWED_CIDRS = 256;

const Cidrs = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: MAX_ALLOWED_CIDRS,
  description: 'Special-purpose ranges in which origins are allowed. Example: 10.0.0.0/8.',
});

export const originAllowList = resource(
  'settings.originAllowList',
  settings({
    path: '/settings/origin-allow-list',
    of: {},
    reads: 'Returns the special-purpose ranges in which origins are allowed.',
    saves: 'Replaces the special-purpose ranges in which origins are allowed, on every cluster.',
    change: { cidrs: Cidrs },
    output: Type.Object({ cidrs: Cidrs }),
    saved: Type.Object({ cidrs: Cidrs }),
    audit: 'system.origin_allow_list_update',
  }),
);

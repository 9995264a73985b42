import Type from 'typebox';
import { resource } from '../procedure.ts';
import { settings } from '../settings.ts';

export const MAX_ALLOWED_CIDRS = 256;

const Cidrs = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: MAX_ALLOWED_CIDRS,
  description: 'Special-purpose ranges that origins may be in all the same.',
});

export const originAllowList = resource(
  'settings.originAllowList',
  settings({
    path: '/settings/origin-allow-list',
    of: {},
    reads: 'Answers the special-purpose ranges that origins may be in.',
    saves: 'Replaces the special-purpose ranges that origins may be in, on every cluster.',
    change: { cidrs: Cidrs },
    output: Type.Object({ cidrs: Cidrs }),
    saved: Type.Object({ cidrs: Cidrs }),
    audit: 'system.origin_allow_list_update',
  }),
);

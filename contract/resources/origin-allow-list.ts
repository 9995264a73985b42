import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Input } from '../scalars/common.ts';

export const MAX_ALLOWED_CIDRS = 256;

const Cidrs = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: MAX_ALLOWED_CIDRS,
  description: 'Special-purpose ranges that origins may be in all the same.',
});

export const originAllowList = resource('settings.originAllowList', {
  get: procedure({
    method: 'GET',
    path: '/settings/origin-allow-list',
    summary: 'Answers the special-purpose ranges that origins may be in.',
    input: Input({}),
    output: Type.Object({ cidrs: Cidrs }),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  set: procedure({
    method: 'PUT',
    path: '/settings/origin-allow-list',
    summary: 'Replaces the special-purpose ranges that origins may be in, on every cluster.',
    input: Input({ cidrs: Cidrs }),
    output: Type.Object({ cidrs: Cidrs }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'system.origin_allow_list_update',
    idempotency: 'accepted',
    errors: [],
  }),
});

import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf } from '../scalars/common.ts';
import { WAF_PACK_IDS } from '../waf-pack-ids.ts';
import { SavedExclusion } from './site-waf.ts';
import { MAX_LOOKED_AT } from './waf-exclusions.ts';

const Events = Nullable(Type.Integer({ minimum: 0 }));

export const SiteWafPack = Type.Object({
  pack: OneOf(WAF_PACK_IDS),
  name: Type.String({ examples: ['WordPress'] }),
  version: Type.Integer({ minimum: 1, description: 'Rises with each change of the pack.' }),
  documented: Type.String({
    examples: ['WordPress 6.8'],
    description: 'Version of the application whose documentation the pack follows.',
  }),
  enabled: Type.Boolean({ description: 'Whether the WAF settings of the site have the pack.' }),
  exclusions: Type.Array(
    Type.Object({
      ...SavedExclusion.properties,
      reason: Type.String({ description: 'Requests of the application that need the exclusion.' }),
    }),
    { description: 'Parts of requests that rules skip while the pack is on.' },
  ),
  contentTypes: Type.Array(Type.String({ examples: ['application/x-git-upload-pack-request'] }), {
    description: 'Media types of bodies that raise no match while the pack is on, in addition to those of the site.',
  }),
  events: {
    ...Events,
    description:
      'Lower bound of events that the pack would have prevented; null: the console does not know the rules of a tag.',
  },
  matched: { ...Events, description: 'Events with at least one match that the pack skips; null as `events`.' },
});

const WafPacks = Type.Object({
  approximate: Type.Literal(true, {
    description: 'Always true: nodes report only some of the requests that matched rules.',
  }),
  looked: Type.Integer({
    minimum: 0,
    description: `Number of events examined: those of the last 7 days, the newest ${MAX_LOOKED_AT} at most.`,
  }),
  items: Type.Array(SiteWafPack, { description: 'All packs.' }),
});

export const wafPacks = resource('sites.waf.packs', {
  list: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/packs',
    summary:
      'Lists the packs of WAF exclusions for applications, with the events of a site that each would have prevented.',
    input: Input({ id: Id }),
    output: WafPacks,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});

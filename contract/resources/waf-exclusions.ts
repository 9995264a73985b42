import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf } from '../scalars/common.ts';
import { WAF_PARTS, type WafPart } from '../waf-rule-set.ts';
import { GivenExclusion, RuleId, SavedExclusion } from './site-waf.ts';

/** Events that are looked at, at most: the newest of the last 7 days. */
export const MAX_LOOKED_AT = 5000;

const told = {
  approximate: Type.Literal(true, {
    description: 'Always true: nodes report only some of the requests that matched rules.',
  }),
  looked: Type.Integer({
    minimum: 0,
    description: `Number of events examined: those of the last 7 days, the newest ${MAX_LOOKED_AT} at most.`,
  }),
};
const UNKNOWN = 'null: the console does not know the rules of the tag.';
const counts = {
  events: {
    ...Nullable(Type.Integer({ minimum: 0 })),
    description:
      'Lower bound of events that the exclusion would have prevented: attacks whose score would have been ' +
      `below the threshold, and others without any remaining match; ${UNKNOWN}`,
  },
  matched: {
    ...Nullable(Type.Integer({ minimum: 0 })),
    description: `Events with at least one match that the exclusion skips; ${UNKNOWN}`,
  },
};

export const ExclusionHit = Type.Object({ exclusion: SavedExclusion, ...counts });
const ExclusionHits = Type.Object({
  ...told,
  items: Type.Array(ExclusionHit, {
    description: 'In the order of the settings.',
  }),
});
/** Exclusions that are previewed together, at most: as many as an event has matches. */
export const MAX_PREVIEWED = 32;

const ExclusionPreview = Type.Object({
  ...told,
  exclusions: Type.Array(SavedExclusion, { description: 'As they would be saved.' }),
  ...counts,
  attacks: {
    ...Nullable(Type.Integer({ minimum: 0 })),
    description: `Events among \`matched\` that would still be attacks; ${UNKNOWN}`,
  },
  remaining: Type.Array(
    Type.Object({
      ruleId: RuleId,
      part: OneOf(Object.keys(WAF_PARTS) as WafPart[], { description: 'all: a part without a name.' }),
      name: Type.String({ description: 'Name of the argument, cookie or header; empty with `all`.' }),
      events: Type.Integer({ minimum: 1 }),
    }),
    {
      description:
        'Matches because of which they would still be attacks, with the number of these events; most events first, at most 10.',
    },
  ),
});

export const wafExclusions = resource('sites.waf.exclusions', {
  hits: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/exclusions/hits',
    summary: 'Returns, for each exclusion of a site, how many events of the last 7 days it would have prevented.',
    input: Input({ id: Id }),
    output: ExclusionHits,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  preview: procedure({
    method: 'POST',
    path: '/sites/{id}/waf/exclusions/preview',
    summary: 'Previews how many events of the last 7 days exclusions together would have prevented; changes nothing.',
    input: Input({
      id: Id,
      exclusions: Type.Array(GivenExclusion, {
        minItems: 1,
        maxItems: MAX_PREVIEWED,
        description: 'Exclusions as they would be added to the settings.',
      }),
    }),
    output: ExclusionPreview,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND', 'WAF_RULE_NOT_EXCLUDABLE'],
  }),
});

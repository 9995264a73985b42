import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable } from '../scalars/common.ts';
import { GivenExclusion, SavedExclusion } from './site-waf.ts';

/** Events that are looked at, at most: the newest of the last 7 days. */
export const MAX_LOOKED_AT = 5000;

const told = {
  approximate: Type.Literal(true, { description: 'Nodes tell of some requests in which rules matched, not of all.' }),
  looked: Type.Integer({
    minimum: 0,
    description: `Events of the last 7 days that were looked at, the newest ${MAX_LOOKED_AT} at most.`,
  }),
};
const UNKNOWN = 'null for a tag of which the console does not know the rules.';
const counts = {
  events: {
    ...Nullable(Type.Integer({ minimum: 0 })),
    description:
      'Events that it would have silenced, at least: attacks whose score would have been below the threshold, and others ' +
      `of which nothing would be left; ${UNKNOWN}`,
  },
  matched: {
    ...Nullable(Type.Integer({ minimum: 0 })),
    description: `Events with a match that it leaves alone, whatever else matched there; ${UNKNOWN}`,
  },
};

export const ExclusionHit = Type.Object({ exclusion: SavedExclusion, ...counts });
const ExclusionHits = Type.Object({
  ...told,
  items: Type.Array(ExclusionHit, {
    description: 'In the order of the settings.',
  }),
});
const ExclusionPreview = Type.Object({ ...told, exclusion: SavedExclusion, ...counts });

export const wafExclusions = resource('sites.waf.exclusions', {
  hits: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/exclusions/hits',
    summary: 'Answers of each exclusion of a site how many events of the last 7 days it would have silenced.',
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
    summary: 'Answers how many events of the last 7 days an exclusion would have silenced; changes nothing.',
    input: Input({ id: Id, exclusion: GivenExclusion }),
    output: ExclusionPreview,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND', 'WAF_RULE_NOT_EXCLUDABLE'],
  }),
});

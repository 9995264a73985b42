import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { WAF_PARTS, type WafPart } from '../waf-rule-set.ts';
import { TopWafRule, WAF_MODES } from './site-waf.ts';

/** What guidance looks back at, and how long a site detects before it is ready. */
export const GUIDANCE_HOURS = 24;
/** Clients and requests from which on what matched at one place is suspected to be no attack. */
export const SUSPECT_CLIENTS = 3;
export const SUSPECT_EVENTS = 5;
export const MAX_SUSPECTS = 10;

const Requests = Type.Integer({ minimum: 0 });
const Rule = Type.Integer({ minimum: 900_000, maximum: 999_999, examples: [942_100] });

export const WafGuidance = Type.Object({
  approximate: Type.Literal(true, { description: 'Nodes tell what they counted within two minutes.' }),
  mode: OneOf(WAF_MODES),
  detectingSince: { ...Nullable(Timestamp), description: 'Since when the mode is detect; null in another mode.' },
  ready: Type.Boolean({ description: `Whether the mode has been detect for ${GUIDANCE_HOURS} hours.` }),
  hours: Type.Literal(GUIDANCE_HOURS, { description: 'Up to now; all that follows is of them.' }),
  requests: { ...Requests, description: 'All of the site.' },
  matched: { ...Requests, description: 'Those in which rules matched.' },
  wouldBlock: { ...Requests, description: 'Attacks that went on, which block would have stopped.' },
  blocked: { ...Requests, description: 'Attacks that were stopped.' },
  rules: Type.Array(TopWafRule, { description: 'Rules that matched, the ten most frequent first.' }),
  suspects: Type.Array(
    Type.Object({
      ruleId: Rule,
      path: Type.String({ description: 'Decoded, in the one form in which rules see it.' }),
      part: OneOf(Object.keys(WAF_PARTS) as WafPart[], { description: 'all: a part that has no name.' }),
      name: Type.String({ description: 'Of the argument, cookie or header; empty with all.' }),
      events: { ...Requests, description: 'Requests, of those that events tell of.' },
      clients: { ...Requests, description: 'Clients they came from, IPv4 addresses or IPv6 /64.' },
    }),
    {
      description:
        `What looks false: rules that matched in attacks at the same place of the same path, in at least ${SUSPECT_EVENTS} ` +
        `requests of at least ${SUSPECT_CLIENTS} clients; those with the most clients first, at most ${MAX_SUSPECTS}.`,
    },
  ),
});

export const wafGuidance = resource('sites.waf.guidance', {
  get: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/guidance',
    summary: 'Answers what block would have stopped on a site that detects, and what of it looks false.',
    input: Input({ id: Id }),
    output: WafGuidance,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});

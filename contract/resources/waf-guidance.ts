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
  approximate: Type.Literal(true, { description: 'Always true: nodes report counts within 2 minutes.' }),
  mode: OneOf(WAF_MODES),
  detectingSince: {
    ...Nullable(Timestamp),
    description: 'Time since which the mode is `detect`; null in another mode.',
  },
  ready: Type.Boolean({ description: `Whether the mode has been \`detect\` for ${GUIDANCE_HOURS} hours.` }),
  hours: Type.Literal(GUIDANCE_HOURS, { description: 'Period of all figures, in hours up to now.' }),
  requests: { ...Requests, description: 'All requests of the site.' },
  matched: { ...Requests, description: 'Requests that matched rules.' },
  wouldBlock: { ...Requests, description: 'Attacks that were let through and that `block` would have stopped.' },
  blocked: { ...Requests, description: 'Attacks that were stopped.' },
  rules: Type.Array(TopWafRule, { description: 'Rules that matched, the ten with the most matches first.' }),
  suspects: Type.Array(
    Type.Object({
      ruleId: Rule,
      path: Type.String({ description: 'Path, decoded, in canonical form as rules see it.' }),
      part: OneOf(Object.keys(WAF_PARTS) as WafPart[], { description: 'all: a part without a name.' }),
      name: Type.String({ description: 'Name of the argument, cookie or header; empty with `all`.' }),
      events: { ...Requests, description: 'Number of requests among the recorded events.' },
      clients: { ...Requests, description: 'Number of clients, as IPv4 addresses or IPv6 /64.' },
    }),
    {
      description:
        'Probable false positives: rules that matched in attacks at the same part of the same path, in at ' +
        `least ${SUSPECT_EVENTS} requests of at least ${SUSPECT_CLIENTS} clients. Most clients first, at ` +
        `most ${MAX_SUSPECTS}.`,
    },
  ),
});

export const wafGuidance = resource('sites.waf.guidance', {
  get: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/guidance',
    summary: 'Returns the attacks that mode `block` would have stopped on a site, with probable false positives.',
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

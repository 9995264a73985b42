import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { MAX_CIDR_LENGTH } from '../scalars/cidr.ts';
import { Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';
import { WAF_PARTS, type WafPart } from '../waf-rule-set.ts';
import { range } from './rule-hits.ts';

const Rule = Type.Integer({ minimum: 900_000, maximum: 999_999, examples: [942_100] });
const Score = Type.Integer({ minimum: 0 });

export const WafEvent = Type.Object(
  {
    id: Id,
    node: Nullable(Type.Object({ id: Id, name: Type.String() })),
    occurredAt: Timestamp,
    requestId: Type.String(),
    method: Type.String(),
    path: Type.String({ description: 'Decoded, in the one form in which rules see it, without the query.' }),
    address: { ...Nullable(Type.String()), description: 'The client, IPv4 or IPv6.' },
    score: Score,
    threshold: { ...Score, description: 'From which score on the site took a request for an attack.' },
    blocked: Type.Boolean(),
    rules: Type.Array(Rule, { description: 'Rules that matched, at most 16.' }),
    matches: Type.Array(
      Type.Object({
        ruleId: Rule,
        part: OneOf(Object.keys(WAF_PARTS) as WafPart[], {
          description: 'all: a part that has no name, or one beyond the first 256 arguments or cookies.',
        }),
        name: Type.String({ description: 'Of the argument, cookie or header; empty with all.' }),
        value: {
          ...Nullable(Type.String()),
          description:
            'What matched there, masked, at most 64 characters; null where none is told, as without eventValues.',
        },
      }),
      { description: 'Where they matched, at most 16. Values are kept masked or not at all.' },
    ),
  },
  { description: 'A request in which rules of the WAF matched.' },
);

export const wafEvents = resource('sites.waf.events', {
  list: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/events',
    summary:
      'Lists requests of a site in which rules of the WAF matched, newest first: of each node and minute the first ten attacks and two others.',
    input: Input({
      id: Id,
      range,
      blocked: Type.Optional(Type.Boolean()),
      ruleId: Type.Optional(Rule),
      requestId: Type.Optional(Type.String({ minLength: 1, maxLength: 128, pattern: '^[!-~]+$' })),
      path: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 1024,
          pattern: '^/[^\\u0000-\\u001f\\u007f]*$',
          examples: ['/editor'],
          description: 'Paths that begin with it.',
        }),
      ),
      address: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: MAX_CIDR_LENGTH,
          examples: ['192.0.2.7'],
          description: 'Clients with this IPv4 or IPv6 address, or of a range of them.',
        }),
      ),
      ...PageQuery(50),
    }),
    output: Page(WafEvent),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});

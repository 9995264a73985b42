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
    path: Type.String({ description: 'Path without query, decoded, in canonical form as rules see it.' }),
    address: { ...Nullable(Type.String()), description: 'Client address, IPv4 or IPv6.' },
    score: Score,
    threshold: { ...Score, description: 'Score at which the site counts a request as an attack.' },
    blocked: Type.Boolean(),
    rules: Type.Array(Rule, { description: 'Rules that matched, at most 16.' }),
    rulesSeen: {
      ...Nullable(Type.Integer({ minimum: 1 })),
      description: 'Number of rules that matched; null: reported by a node of an older version.',
    },
    matchesSeen: {
      ...Nullable(Type.Integer({ minimum: 1 })),
      description:
        'Number of parts in which rules matched, one per rule and part, of which `matches` has at most 32; null: reported ' +
        'by a node of an older version.',
    },
    matches: Type.Array(
      Type.Object({
        ruleId: Rule,
        part: OneOf(Object.keys(WAF_PARTS) as WafPart[], {
          description: 'all: a part without a name, or beyond the first 256 arguments or cookies.',
        }),
        name: Type.String({ description: 'Name of the argument, cookie or header; empty with `all`.' }),
        value: {
          ...Nullable(Type.String()),
          description:
            'Masked matched text, at most 64 characters; null: not reported, for example without `eventValues`.',
        },
        points: {
          ...Nullable(Score),
          description:
            'Points that the matches of the rule in this part add to the score; null: reported by a node of an older version.',
        },
      }),
      {
        description:
          'Positions of the matches, at most 32: one of each rule before a second one of any rule. Values are stored ' +
          'masked or not at all.',
      },
    ),
  },
  { description: 'A request that matched WAF rules.' },
);

export const wafEvents = resource('sites.waf.events', {
  list: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/events',
    summary:
      'Lists requests of a site that matched WAF rules, newest first. Each node records ten attacks and ' +
      'two other requests per minute.',
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
          description: 'Paths that begin with this text.',
        }),
      ),
      address: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: MAX_CIDR_LENGTH,
          examples: ['192.0.2.7'],
          description: 'Clients with this IPv4 or IPv6 address, or in this range.',
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

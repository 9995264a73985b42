// Why the response to a made-up request is, or is not, in the cache of nodes.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf } from '../scalars/common.ts';
import { TriedRequest, TriedResponse } from '../scalars/tried-request.ts';
import { CacheRulesInput, CacheSettingsInput } from './site-cache.ts';

export const CACHE_DECISIONS = ['stored', 'not_stored', 'bypassed', 'ended', 'response_needed', 'undecided'] as const;

export const CACHE_REASONS = [
  // Of the request.
  'method',
  'head',
  'body',
  'precondition',
  'path',
  'empty_query',
  'method_override',
  'connection',
  'site_rule',
  'no_rule',
  'rule_bypasses',
  'authorization',
  'cookie',
  'ended',
  'rule_failed',
  // What the request does not say.
  'unknown_field',
  'too_costly',
  'response_needed',
  // Of the response.
  'no_rule_for_response',
  'status',
  'vary',
  'set_cookie',
  'authorization_response',
  'no_store',
  'private',
  'no_lifetime',
  'rule_ttl_zero',
  'no_validator',
  'stored',
] as const;
export type CacheReason = (typeof CACHE_REASONS)[number];

export const DECIDING_PARTS = ['request', 'response', 'cache_rule', 'site_rule'] as const;
export const KEY_PARTS = [
  'scheme',
  'host',
  'path',
  'query',
  'header',
  'cookie',
  'device',
  'proxy_header',
  'origin_request',
  'vary',
] as const;
export const FRESHNESS_SOURCES = ['s_maxage', 'max_age', 'expires', 'rule', 'no_cache'] as const;
export const CACHE_RULE_RESULTS = ['matched', 'not_matched', 'not_tried', 'unknown', 'failed'] as const;
export const RESPONSE_RESULTS = ['fits', 'status_differs', 'size_differs', 'size_unknown'] as const;

const seconds = (description: string) => Type.Integer({ minimum: 0, description });
const Priority = Type.Integer({ minimum: 0, maximum: 10_000 });

export const CacheExplanation = Type.Object({
  decision: OneOf(CACHE_DECISIONS, {
    description:
      'stored: nodes store the response. not_stored: they do not. bypassed: the request does not reach the cache. ended: ' +
      'rules end the request before. response_needed: it depends on the response, which the request omits. undecided: a rule ' +
      'reads a field that the request omits.',
  }),
  why: OneOf(CACHE_REASONS),
  decidedBy: {
    ...Nullable(
      Type.Object({
        part: OneOf(DECIDING_PARTS),
        name: Type.String({ description: 'Header, field or setting, or the name of a rule.' }),
        value: { ...Nullable(Type.String()), description: 'Its value, at most its first 512 bytes.' },
      }),
    ),
    description: 'Header, setting or rule that decided; null: nothing alone.',
  },
  rule: {
    ...Nullable(Priority),
    description: 'Priority of the cache rule that decided; null: none.',
  },
  xCache: {
    ...Nullable(OneOf(['MISS', 'BYPASS'])),
    description: 'X-Cache of the first such request at a node that has nothing stored; null: not decided.',
  },
  rules: Type.Array(
    Type.Object({
      priority: Priority,
      result: OneOf(CACHE_RULE_RESULTS, {
        description: 'Whether the request meets the condition. not_tried: an earlier rule decides.',
      }),
      unknown: { ...Nullable(Type.String()), description: 'Field that the request must include for a decision.' },
      response: {
        ...Nullable(OneOf(RESPONSE_RESULTS)),
        description: 'Whether the response meets the conditions of a matched rule; null: not asked.',
      },
    }),
    { description: 'All cache rules in the order in which nodes try them.' },
  ),
  key: {
    ...Nullable(
      Type.Array(
        Type.Object({
          part: OneOf(KEY_PARTS, {
            description:
              'proxy_header: a header in which origins believe a proxy. origin_request: what rules changed of the request to ' +
              'the origin. vary: a header that the response varies by.',
          }),
          name: { ...Nullable(Type.String()), description: 'Which header, cookie or change; null: there is only one.' },
          value: {
            ...Nullable(Type.String()),
            description: 'At most its first 512 bytes; null: the request has none.',
          },
        }),
      ),
    ),
    description: 'Parts of the request that distinguish stored responses; null: the request does not reach the cache.',
  },
  freshness: {
    ...Nullable(
      Type.Object({
        source: OneOf(FRESHNESS_SOURCES, { description: 'Where the lifetime comes from. Nodes use no heuristic.' }),
        header: { ...Nullable(Type.String()), description: 'Header of the origin; null: the rule.' },
        lifetimeSeconds: seconds('How long the response is fresh, counted from when the origin made it.'),
        ageSeconds: seconds('Age of the response when it arrives, from Age and Date.'),
        validated: Type.Boolean({ description: 'Whether nodes validate the response before each use.' }),
        staleWhileRevalidateSeconds: seconds('How long after that it is still sent while it is validated.'),
        staleIfErrorSeconds: seconds('How long after that it is still sent while origins fail.'),
      }),
    ),
    description: 'Null: the response is not stored, or there is none.',
  },
  browserTtlSeconds: {
    ...Nullable(Type.Integer({ minimum: 1 })),
    description: '`max-age` that visitors get in place of the Cache-Control of the origin; null: that stays.',
  },
  unknown: Type.Array(Type.String(), { description: 'Fields that a rule read and the request omits.' }),
});
export type CacheExplanation = Static<typeof CacheExplanation>;

export const siteCacheExplanation = resource('sites.cache', {
  explain: procedure({
    method: 'POST',
    path: '/sites/{id}/cache/explain',
    summary:
      'Explains whether nodes store the response to an invented request, for how long, and what decides. Nothing is sent.',
    input: Input({
      id: Id,
      request: TriedRequest,
      response: Type.Optional({
        ...TriedResponse,
        description: 'Response of the origin. If omitted, only what the request decides is explained.',
      }),
      cacheRules: Type.Optional({
        ...CacheRulesInput,
        description: 'Cache rules to explain instead of those of the site, for example before saving them.',
      }),
      cacheSettings: Type.Optional({
        ...CacheSettingsInput,
        description: 'Cache settings to explain instead of those of the site.',
      }),
    }),
    output: CacheExplanation,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    bodyLimit: 24 * 1024 * 1024,
    errors: ['SITE_NOT_FOUND', 'RULE_INVALID', 'IP_LIST_REFERENCE_UNKNOWN', 'ORIGIN_HOST_HEADER_INVALID'],
  }),
});

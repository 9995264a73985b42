import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf } from '../scalars/common.ts';

/** What is counted of rules, in the order of RuleEvent of the messages, which begins with 1. */
export const RULE_EVENTS = ['logged', 'limited', 'blocked', 'challenged', 'redirected', 'applied'] as const;
export type RuleEventName = (typeof RULE_EVENTS)[number];

/** What is counted of rules of the WAF, after those in RuleEvent of the messages. */
export const WAF_RULE_EVENT = RULE_EVENTS.length + 1;

/** Ranges up to now, and their hours. */
export const RULE_RANGES = { '1h': 1, '6h': 6, '24h': 24, '7d': 168, '30d': 720 } as const;
export type RuleRange = keyof typeof RULE_RANGES;
export const DEFAULT_RULE_RANGE = '24h';
const HOUR_MS = 3_600_000;

/** When a range that ends now begins. */
export function startOf(range: RuleRange = DEFAULT_RULE_RANGE, now = Date.now()): Date {
  return new Date(now - RULE_RANGES[range] * HOUR_MS);
}

/** Rules and events answered, at most. */
export const MAX_RULE_HITS = 500;

/** Query of a range. */
export const range = Type.Optional({
  ...OneOf(Object.keys(RULE_RANGES) as RuleRange[], {
    description: 'How far back; beyond the last two hours, an hour of which a part is in the range counts whole.',
  }),
  default: DEFAULT_RULE_RANGE,
});
const approximate = Type.Literal(true, {
  description: 'Nodes count each minute the log rules that matched most, and tell it within two minutes.',
});
const requests = Type.Integer({ minimum: 0 });
const unsupportedNodes = Type.Integer({
  minimum: 0,
  description: 'Active nodes that lack rule-log-v1: they count nothing.',
});

export const LoggedRule = Type.Object({
  ruleId: Id,
  name: { ...Nullable(Type.String()), description: 'null once the rule is deleted.' },
  platform: Type.Boolean(),
  requests,
});

const LoggedRules = Type.Object({
  approximate,
  items: Type.Array(LoggedRule, {
    description: 'Log rules of the site and of the platform that matched most, the most frequent first.',
  }),
  unsupportedNodes,
});

export const RuleHit = Type.Object({
  ruleId: Id,
  event: OneOf(RULE_EVENTS, {
    description:
      'logged: a log rule matched; limited, blocked, challenged, redirected: what became of the request; applied: a rule of any other kind matched and did what it says.',
  }),
  requests,
});

const RuleHits = Type.Object({
  approximate,
  items: Type.Array(RuleHit, {
    description: `The most frequent first, at most ${MAX_RULE_HITS}; rules that never matched are left out.`,
  }),
  unsupportedNodes,
});

const reads = {
  method: 'GET',
  status: 200,
  access: 'operator',
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

export const ruleHits = resource('ruleHits', {
  logged: procedure({
    ...reads,
    path: '/sites/{id}/rules/logged',
    summary: 'Answers which log rules matched most on a site, and how often.',
    input: Input({ id: Id, range, limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 10 })) }),
    output: LoggedRules,
    errors: ['SITE_NOT_FOUND'],
  }),
  site: procedure({
    ...reads,
    path: '/sites/{id}/rules/hits',
    summary: 'Answers how often the rules of a site matched, by what became of the requests.',
    input: Input({ id: Id, range }),
    output: RuleHits,
    errors: ['SITE_NOT_FOUND'],
  }),
  platform: procedure({
    ...reads,
    path: '/platform-rules/hits',
    summary: 'Answers how often the rules of the platform matched on all sites, by what became of the requests.',
    input: Input({ range }),
    output: RuleHits,
    errors: [],
  }),
});

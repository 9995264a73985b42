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
    description: 'How far back to count. Beyond the last 2 hours, partly included hours count as a whole.',
  }),
  default: DEFAULT_RULE_RANGE,
});
const approximate = Type.Literal(true, {
  description:
    'Always true: nodes count only the log rules that matched most in each minute, and report within 2 minutes.',
});
const requests = Type.Integer({ minimum: 0 });
const unsupportedNodes = Type.Integer({
  minimum: 0,
  description: 'Active nodes without the capability rule-log-v1; their requests are not counted.',
});

export const LoggedRule = Type.Object({
  ruleId: Id,
  name: { ...Nullable(Type.String()), description: 'null: the rule was deleted.' },
  platform: Type.Boolean(),
  requests,
});

const LoggedRules = Type.Object({
  approximate,
  items: Type.Array(LoggedRule, {
    description: 'Log rules of the site and of the platform, most matches first.',
  }),
  unsupportedNodes,
});

export const RuleHit = Type.Object({
  ruleId: Id,
  event: OneOf(RULE_EVENTS, {
    description:
      'logged: a log rule matched. limited, blocked, challenged, redirected: action taken on the request. ' +
      'applied: a rule of any other kind matched and took effect.',
  }),
  requests,
});

const RuleHits = Type.Object({
  approximate,
  items: Type.Array(RuleHit, {
    description: `Most matches first, at most ${MAX_RULE_HITS}; rules without matches are omitted.`,
  }),
  unsupportedNodes,
});

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

export const ruleHits = resource('ruleHits', {
  logged: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/rules/logged',
    summary: 'Lists the log rules that matched most on a site, with counts.',
    input: Input({ id: Id, range, limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 10 })) }),
    output: LoggedRules,
    errors: ['SITE_NOT_FOUND'],
  }),
  site: procedure({
    ...reads,
    access: 'operator',
    path: '/sites/{id}/rules/hits',
    summary: 'Returns how often the rules of a site matched, by action taken.',
    input: Input({ id: Id, range }),
    output: RuleHits,
    errors: ['SITE_NOT_FOUND'],
  }),
  platform: procedure({
    ...reads,
    access: 'operator',
    path: '/platform-rules/hits',
    summary: 'Returns how often the rules of the platform matched on all sites, by action taken.',
    input: Input({ range }),
    output: RuleHits,
    errors: [],
  }),
});

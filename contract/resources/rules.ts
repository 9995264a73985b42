import Type from 'typebox';
import { MAX_CACHE_CONDITION } from '../expression/limits.ts';
import { PHASES } from '../expression/phases.ts';
import { procedure, resource } from '../procedure.ts';
import { RULE_WARNINGS, type RuleWarningCode } from '../rule-warnings.ts';
import { Decimal, ExpectedUpdatedAt, Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { MAX_PLATFORM_RULES, MAX_SITE_RULES, RuleInput, Rule as RuleSchema } from '../scalars/rule.ts';
import { ACTION_PHASES, CACHE_PHASE_CONFIG, RULE_ACTIONS } from '../scalars/rule-action.ts';
import { settings } from '../settings.ts';

/** What pages make the forms of rules from: they have files of procedures as data. */
export { ACTION_PHASES, CACHE_PHASE_CONFIG, MAX_PLATFORM_RULES, MAX_SITE_RULES, RULE_ACTIONS, RuleInput };

/** What an expression is for. */
export const EXPRESSION_KINDS = ['condition', 'value', 'cacheRule'] as const;

export const ExpressionCheck = Type.Object({
  valid: Type.Boolean(),
  position: Type.Integer({
    minimum: 0,
    description: 'Offset of the wrong character, from 0, in UTF-16 code units; 0 if the expression is valid.',
  }),
  message: Type.String({ description: 'Error in English; empty if the expression is valid.' }),
  code: Type.Optional(Type.String({ description: 'Stable error code.' })),
  params: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Values inserted into the message, by name.' }),
  ),
});

export const Rule = RuleSchema;

export const RuleWarning = Type.Object({
  ruleId: Id,
  code: OneOf(Object.keys(RULE_WARNINGS) as RuleWarningCode[], {
    description: 'Stable warning code.',
  }),
  params: Type.Record(Type.String(), Type.String(), { description: 'Values inserted into the message, by name.' }),
  message: Type.String({ description: 'Warning in English.' }),
});

const Warnings = Type.Array(RuleWarning, { description: 'Possible mistakes. Warnings never reject a rule.' });
const Revision = Nullable({
  ...Decimal,
  description: 'Revision that publishes the change; null if nothing changed.',
});

const ofSite = {
  siteId: Id,
  rules: Type.Array(RuleSchema, { maxItems: MAX_SITE_RULES, description: 'In execution order within each phase.' }),
  updatedAt: Timestamp,
  warnings: Warnings,
};
const ofPlatform = {
  rules: Type.Array(RuleSchema, { maxItems: MAX_PLATFORM_RULES }),
  updatedAt: Timestamp,
  warnings: Warnings,
};

export const SiteRules = Type.Object(ofSite);
export const SavedSiteRules = Type.Object({ ...ofSite, revision: Revision });
export const PlatformRules = Type.Object(ofPlatform);

/** All of a site or the platform at their largest, in characters of three bytes. */
const BODY_LIMIT = 16 * 1024 * 1024;

export const siteRules = resource('sites.rules', {
  ...settings({
    path: '/sites/{id}/rules',
    of: { id: Id },
    reads: 'Returns the rules of a site.',
    saves: 'Replaces the rules of a site.',
    change: {
      rules: Type.Array(RuleInput, { maxItems: MAX_SITE_RULES }),
      expectedUpdatedAt: ExpectedUpdatedAt,
    },
    output: SiteRules,
    saved: SavedSiteRules,
    audit: 'site.rules_update',
    bodyLimit: BODY_LIMIT,
    errors: ['SITE_NOT_FOUND'],
    saveErrors: ['RULE_INVALID', 'IP_LIST_REFERENCE_UNKNOWN', 'ORIGIN_HOST_HEADER_INVALID', 'UPDATED_AT_MISMATCH'],
  }),
});

export const platformRules = resource('platformRules', {
  ...settings({
    path: '/platform-rules',
    of: {},
    reads: 'Returns the rules of all sites. In every phase they run before the rules of each site.',
    saves: 'Replaces the rules of all sites.',
    change: {
      rules: Type.Array(RuleInput, { maxItems: MAX_PLATFORM_RULES }),
      expectedUpdatedAt: ExpectedUpdatedAt,
    },
    output: PlatformRules,
    saved: PlatformRules,
    audit: 'platform.rules_update',
    bodyLimit: BODY_LIMIT,
    saveErrors: ['RULE_INVALID', 'IP_LIST_REFERENCE_UNKNOWN', 'ORIGIN_HOST_HEADER_INVALID', 'UPDATED_AT_MISMATCH'],
  }),
});

export const rules = resource('rules', {
  validate: procedure({
    method: 'POST',
    path: '/rules/validate',
    summary: 'Validates a rule expression, and returns the position and cause of an error.',
    input: Input({
      expression: Type.String({ maxLength: MAX_CACHE_CONDITION }),
      phase: Type.Optional(
        OneOf(PHASES, {
          description: 'Phase of the rule. If omitted, and for a cacheRule, response fields cannot be read.',
        }),
      ),
      kind: Type.Optional({
        ...OneOf(EXPRESSION_KINDS, {
          description:
            'condition: condition of a rule. value: expression that computes a string. cacheRule: condition of a ' +
            'cache rule, which may be longer.',
        }),
        default: 'condition',
      }),
    }),
    output: ExpressionCheck,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});

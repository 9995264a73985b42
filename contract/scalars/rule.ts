// Rules as they are saved and answered.
import Type, { type Static } from 'typebox';
import { MAX_EXPRESSION } from '../expression/limits.ts';
import { PHASES } from '../expression/phases.ts';
import { Id, ONE_LINE, OneOf } from './common.ts';
import { RuleAction, RuleActionInput } from './rule-action.ts';

export const MAX_SITE_RULES = 64;
export const MAX_PLATFORM_RULES = 32;
export const MAX_RULE_NAME = 100;

const enabled = { description: 'Whether nodes get it.' };
const rule = {
  name: Type.String({ minLength: 1, maxLength: MAX_RULE_NAME, pattern: ONE_LINE }),
  phase: OneOf(PHASES, { description: 'When it runs; in each phase rules of the platform come first.' }),
  expression: Type.String({ maxLength: MAX_EXPRESSION, description: 'Condition: the requests that it is about.' }),
};

export const Rule = Type.Object({ id: Id, ...rule, enabled: Type.Boolean(enabled), action: RuleAction });
export type Rule = Static<typeof Rule>;

export const RuleInput = Type.Object(
  {
    id: Type.Optional({
      ...Id,
      description: 'Of the rule that it replaces. Any other is made anew, and one that stands there twice.',
    }),
    ...rule,
    // Filled in where it is left out.
    enabled: Type.Optional(Type.Boolean({ ...enabled, default: false })) as unknown as Type.TBoolean,
    action: RuleActionInput,
  },
  { additionalProperties: false },
);
export type RuleInput = Static<typeof RuleInput>;

// Rules as they are saved and answered.
import Type, { type Static } from 'typebox';
import { MAX_EXPRESSION } from '../expression/limits.ts';
import { PHASES } from '../expression/phases.ts';
import { Id, ONE_LINE, OneOf } from './common.ts';
import { RuleAction, RuleActionInput } from './rule-action.ts';

export const MAX_SITE_RULES = 64;
export const MAX_PLATFORM_RULES = 32;
export const MAX_RULE_NAME = 100;

const enabled = { description: 'Whether nodes receive the rule.' };
const rule = {
  name: Type.String({ minLength: 1, maxLength: MAX_RULE_NAME, pattern: ONE_LINE }),
  phase: OneOf(PHASES, { description: 'Phase in which the rule runs. In each phase platform rules run first.' }),
  expression: Type.String({ maxLength: MAX_EXPRESSION, description: 'Condition that a request must match.' }),
};

export const Rule = Type.Object({ id: Id, ...rule, enabled: Type.Boolean(enabled), action: RuleAction });
export type Rule = Static<typeof Rule>;

export const RuleInput = Type.Object(
  {
    id: Type.Optional({
      ...Id,
      description: 'ID of the rule to replace. An unknown or repeated ID creates a new rule.',
    }),
    ...rule,
    // Filled in where it is left out.
    enabled: Type.Optional(Type.Boolean({ ...enabled, default: false })) as unknown as Type.TBoolean,
    action: RuleActionInput,
  },
  { additionalProperties: false },
);
export type RuleInput = Static<typeof RuleInput>;

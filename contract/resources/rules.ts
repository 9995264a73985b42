import Type from 'typebox';
import { MAX_CACHE_CONDITION } from '../expression/limits.ts';
import { PHASES } from '../expression/phases.ts';
import { procedure, resource } from '../procedure.ts';
import { Input, OneOf } from '../scalars/common.ts';

/** What an expression is for. */
export const EXPRESSION_KINDS = ['condition', 'value', 'cacheRule'] as const;

export const ExpressionCheck = Type.Object({
  valid: Type.Boolean(),
  position: Type.Integer({
    minimum: 0,
    description: 'Offset of the character that is wrong, from 0, in UTF-16 code units; 0 when nothing is.',
  }),
  message: Type.String({ description: 'What is wrong there, in English; empty when nothing is.' }),
  code: Type.Optional(Type.String({ description: 'Stable name of what is wrong.' })),
  params: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Values that the message has in it, by name.' }),
  ),
});

export const rules = resource('rules', {
  validate: procedure({
    method: 'POST',
    path: '/rules/validate',
    summary: 'Tells whether an expression of a rule is valid, and if not, which character is wrong and why.',
    input: Input({
      expression: Type.String({ maxLength: MAX_CACHE_CONDITION }),
      phase: Type.Optional(
        OneOf(PHASES, {
          description: 'Phase of the rule. Without it, and for a cacheRule, fields of the response cannot be read.',
        }),
      ),
      kind: Type.Optional({
        ...OneOf(EXPRESSION_KINDS, {
          description:
            'condition: of a rule; value: computes a text; cacheRule: condition of a cache rule, which may be longer.',
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

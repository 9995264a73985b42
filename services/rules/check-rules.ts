// Turns the rules that a client sent into those that are saved: canonical, with ids, and checked as far as the schema
// cannot.
import { randomUUID } from 'node:crypto';
import { fail } from '../../contract/errors.ts';
import type { Rule, RuleInput } from '../../contract/scalars/rule.ts';
import { type CheckedRule, checkRule } from '../../models/rules/rule-message.ts';
import { checkAction } from './check-action.ts';

/**
 * The rules with their expressions as trees. `before`: those that are replaced, whose ids stay with them; `groups`: those
 * of the site's origins, null for rules of the platform; `list`: the field that they came in. Throws RULE_INVALID, BAD_REQUEST, ORIGIN_HOST_HEADER_INVALID.
 */
export function checkRules(
  inputs: readonly RuleInput[],
  before: readonly Pick<Rule, 'id'>[],
  groups: ReadonlySet<string> | null,
  list = 'rules',
): CheckedRule[] {
  const free = new Set(before.map(({ id }) => id));
  return inputs.map((input, index) => {
    const action = checkAction(input.action, input.phase, `/${list}/${index}/action`);
    const named = { list, index, ruleId: input.id ?? null, name: input.name };
    checkGroup(action, groups, named);
    // Of several with the same id the first one is the rule.
    const id = input.id !== undefined && free.delete(input.id) ? input.id : randomUUID();
    const checked = checkRule({ ...input, id, name: input.name.trim(), action });
    if (!('error' in checked)) return checked;
    const { field, error } = checked;
    return invalid(named, field, error);
  });
}

interface Named {
  list: string;
  index: number;
  ruleId: string | null;
  name: string;
}

function checkGroup(action: Rule['action'], groups: ReadonlySet<string> | null, named: Named): void {
  if (action.kind !== 'origin' || action.originGroup === '') return;
  const params = { group: action.originGroup };
  const field = '/action/originGroup';
  if (groups === null) {
    invalid(named, field, {
      code: 'group_not_allowed',
      params,
      message: 'A platform rule must not name an origin group. Remove the group.',
    });
  } else if (!groups.has(action.originGroup)) {
    invalid(named, field, {
      code: 'unknown_group',
      params,
      message: 'The site has no origin in this group. Add one, or choose another group.',
    });
  }
}

function invalid(
  { list, index, ...named }: Named,
  field: string,
  why: { code: string; position?: number; params: Readonly<Record<string, string>>; message: string },
): never {
  const { code, position, params, message } = why;
  const at = { field: `/${list}/${index}${field}`, code, ...(position === undefined ? {} : { position }) };
  return fail('RULE_INVALID', { rule: index, ...named, ...at, params, message });
}

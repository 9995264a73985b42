// Rules as they are saved, in the form in which they are run.
import type { FieldName } from '../../../contract/expression/fields.ts';
import type { Condition, ValueExpression } from '../../../contract/expression/tree.ts';
import type { Rule } from '../../../contract/scalars/rule.ts';
import { headerOfKey } from '../../../contract/scalars/rule-action.ts';
import type { CheckedRule } from '../../../models/rules/rule-message.ts';
import type { RunAction, RunRule, RunTarget, RunValue } from './rule.ts';

/** A saved rule that does not compile any more. */
export interface BrokenRule {
  readonly rule: Rule;
  readonly broken: true;
}

/** A rule at a place of its list; `platform` says whose it is. */
export function runRule(checked: CheckedRule | BrokenRule, position: number, platform: boolean): RunRule {
  const { id, name, phase, enabled } = checked.rule;
  const named = { id, name, position, platform, phase, enabled };
  return 'broken' in checked
    ? { ...named, compiled: null }
    : { ...named, compiled: { condition: checked.condition as Condition, action: actionOf(checked) } };
}

function actionOf({ rule: { action }, values }: CheckedRule): RunAction {
  const value = (computed: string, text: string): RunValue => {
    const tree = values.get(computed) as ValueExpression | undefined;
    return { part: computed, tree: tree ?? { op: 'text', value: text, at: 0, end: text.length } };
  };
  const target = (fields: Extract<typeof action, { kind: 'redirect' | 'rewrite' }>): RunTarget => ({
    target: value('/action/target', fields.value),
    preserveQuery: fields.preserveQuery,
    setQuery: fields.setQuery.map(({ name, value: text }, index) => ({
      name,
      value: value(`/action/setQuery/${index}/expression`, text),
    })),
    removeQuery: fields.removeQuery,
  });
  switch (action.kind) {
    case 'redirect':
      return { kind: 'redirect', statusCode: action.statusCode, ...target(action) };
    case 'rewrite':
      return { kind: 'rewrite', ...target(action) };
    case 'request_header':
    case 'response_header': {
      const { kind, header, remove } = action;
      const append = action.kind === 'response_header' && action.append;
      return { kind, header, append, value: remove ? null : value('/action/expression', action.value) };
    }
    case 'config': {
      const { kind, ...overrides } = action;
      return { kind, overrides };
    }
    case 'rate_limit':
      return { ...action, counted: countedBy(action.key) };
    default:
      return action;
  }
}

function countedBy(key: string): { field: FieldName; name: string | null } {
  const name = headerOfKey(key);
  return name === null ? { field: key as FieldName, name } : { field: 'http.request.headers', name };
}

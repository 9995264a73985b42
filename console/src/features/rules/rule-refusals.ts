// Which fields of which rules a refused save is about. Pure.
import type { CallError } from '../../shared/api/call-error.ts';
import { dotted, type Problem } from '../../shared/forms/problems.ts';
import type { DraftRule } from './rule.ts';

/** Something wrong with a field of the rule with this key. */
export interface RefusedField extends Problem {
  key: string;
}

/** What the server names of the rules in the order in which they were sent; what is about no rule is left out. */
export function refusedFields(error: CallError, sent: readonly Pick<DraftRule, 'key'>[]): RefusedField[] {
  const named: [pointer: unknown, why: Problem['why']][] = [
    ...error.issues.map((issue): [string, Problem['why']] => [issue.path, issue]),
    // A code that judges one field of an action, and one that judges an expression or a group.
    [error.data.path, error],
    [error.code === 'RULE_INVALID' ? error.data.field : undefined, error],
  ];
  return named.flatMap(([pointer, why]) => {
    const [, index, rest] = /^\/rules\/(\d+)\/?(.*)$/.exec(typeof pointer === 'string' ? pointer : '') ?? [];
    const key = index === undefined ? undefined : sent[Number(index)]?.key;
    return key === undefined ? [] : [{ key, path: dotted(`/${rest}`), why }];
  });
}

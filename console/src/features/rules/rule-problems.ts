// What is wrong with a rule, in words, before it is sent and after it was refused.
import type { Issue } from '@contract/errors.ts';
import { issueText } from '@/shared/error/error-text.ts';
import { dotted, isAt } from '@/shared/forms/problems.ts';
import { issuesOf, type JsonSchema } from '@/shared/forms/schema.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { problemsOfAction } from './action.ts';
import { ACTIONS, type RuleContext } from './context.ts';
import { check, type ExpressionKind } from './expression/completion.ts';
import { expressionErrorText } from './expression/error-text.ts';
import type { DraftRule, RuleAction } from './rule.ts';

/** At a dotted path of the rule: `action.setQuery.0.name`. */
export interface RuleProblem {
  path: string;
  text: string;
}

/** What the rule's name may be, by the contract. */
const NAME: JsonSchema = { type: 'string', minLength: 1, maxLength: 100 };

/** Everything that can be told of a rule here. */
export function problemsOf(rule: Omit<DraftRule, 'key'>, context: RuleContext): RuleProblem[] {
  const name = issuesOf(NAME, rule.name.trim()).map((issue) => ({ path: 'name', text: ruleIssueText(issue) }));
  const action = problemsOfAction(ACTIONS, rule.phase, rule.action).map((issue) => ({
    path: `action${issue.path === '' ? '' : `.${dotted(issue.path)}`}`,
    text: ruleIssueText(issue),
  }));
  const group =
    rule.action.kind === 'origin' &&
    rule.action.originGroup !== '' &&
    !context.groups?.includes(rule.action.originGroup)
      ? [{ path: 'action.originGroup', text: i18n.global.t('rules.problem.group', { group: rule.action.originGroup }) }]
      : [];
  return [
    ...name,
    ...expressionProblem('expression', 'condition', rule.expression, rule, context),
    ...action,
    ...group,
    ...valuesOf(rule.action).flatMap(([path, source]) => expressionProblem(path, 'value', source, rule, context)),
  ];
}

/** Value expressions of an action with where they stand. */
function valuesOf(action: RuleAction): [path: string, source: string][] {
  const found: [string, string][] = [];
  if ('target' in action) found.push(['action.target', action.target]);
  if ('expression' in action) found.push(['action.expression', action.expression]);
  if ('setQuery' in action)
    action.setQuery.forEach(({ expression }, index) => {
      found.push([`action.setQuery.${index}.expression`, expression]);
    });
  return found.filter(([, source]) => source !== '');
}

function expressionProblem(
  path: string,
  kind: ExpressionKind,
  source: string,
  { phase }: Pick<DraftRule, 'phase'>,
  { lists }: RuleContext,
): RuleProblem[] {
  const result = check(source, { kind, phase, lists });
  return result.valid ? [] : [{ path, text: expressionErrorText(result.error, result.accepted) }];
}

/** What is wrong with one value; the words of this feature for what only rules can have. */
export function ruleIssueText(issue: Pick<Issue, 'keyword' | 'params'>): string {
  const { t, te } = i18n.global;
  const own = `rules.problem.${issue.keyword}`;
  return te(own) || te(own, 'en') ? t(own) : issueText(issue);
}

/** The first problem at a path or inside of it. */
export function problemAt(problems: readonly RuleProblem[], path: string): string {
  return problems.find((problem) => isAt(path, problem.path))?.text ?? '';
}

/** What the server says of a group of origins; null for other codes. */
export function refusedGroupText(code: string, params: Readonly<Record<string, string>>): string | null {
  const { t } = i18n.global;
  if (code === 'unknown_group') return t('rules.problem.group', params);
  return code === 'group_not_allowed' ? t('rules.problem.groupOfAll') : null;
}

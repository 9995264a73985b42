// What no schema says of an action: how its fields go together, and with the phase. Pages judge with it what the server
// will; they have the contract's schemas as data, so what is needed of those is handed in.
import type { Issue } from '../errors.ts';
import type { Phase } from '../expression/phases.ts';
import { isFixedTarget } from '../expression/results.ts';
import type { ActionKind, ActionOf, RuleAction } from './rule-action.ts';
import { isProtectedHeader } from './rule-headers.ts';

/** The contract's tables of actions. */
export interface ActionTables {
  ACTION_PHASES: Readonly<Record<ActionKind, readonly Phase[]>>;
  CACHE_PHASE_CONFIG: readonly string[];
}

const issue = (path: string, keyword: string, params: Issue['params'] = {}): Issue => ({ path, keyword, params });

/**
 * What does not fit together in an action that the schema takes; none where it is fine. Paths begin with a slash below the
 * action. Names of hosts are judged by the server alone.
 */
export function actionIssues(
  { ACTION_PHASES, CACHE_PHASE_CONFIG }: ActionTables,
  phase: Phase,
  action: RuleAction,
): Issue[] {
  const allowed = ACTION_PHASES[action.kind];
  if (!allowed.includes(phase)) return [issue('/kind', 'phase', { allowed })];
  switch (action.kind) {
    case 'redirect':
    case 'rewrite':
      return targetIssues(action);
    case 'request_header':
    case 'response_header':
      return headerIssues(action);
    case 'config': {
      const given = Object.keys(action).filter((name) => name !== 'kind');
      if (given.length === 0) return [issue('', 'noChange')];
      const wrong = phase === 'cache' ? given.filter((field) => !CACHE_PHASE_CONFIG.includes(field)) : [];
      return wrong.map((field) => issue(`/${field}`, 'phase', { allowed: ['config'] }));
    }
    case 'origin':
      return action.originGroup || action.hostHeader || action.sni || action.port ? [] : [issue('', 'noChange')];
    default:
      return [];
  }
}

function targetIssues({
  kind,
  value,
  target,
  setQuery,
  removeQuery,
}: ActionOf<'redirect'> | ActionOf<'rewrite'>): Issue[] {
  const issues: Issue[] = [];
  if (value !== '' && target !== '') issues.push(issue('/target', 'forbidden'));
  if (value === '' && target === '') issues.push(issue('/value', 'valueOrTarget'));
  if (value !== '' && !isFixedTarget(kind, value)) {
    issues.push(issue('/value', kind === 'redirect' ? 'redirectTarget' : 'rewriteTarget'));
  }
  const names = new Set<string>();
  for (const [index, { name, value: text, expression }] of setQuery.entries()) {
    if (names.has(name)) issues.push(issue(`/setQuery/${index}/name`, 'repeated'));
    names.add(name);
    if (expression !== '' && text !== '') issues.push(issue(`/setQuery/${index}/value`, 'forbidden'));
  }
  for (const [index, name] of removeQuery.entries()) {
    if (names.has(name)) issues.push(issue(`/removeQuery/${index}`, 'repeated'));
  }
  return issues;
}

function headerIssues(action: ActionOf<'request_header'> | ActionOf<'response_header'>): Issue[] {
  const issues = isProtectedHeader(action.header.toLowerCase()) ? [issue('/header', 'forbiddenName')] : [];
  const only = action.remove ? (['value', 'expression'] as const) : [];
  const unwanted: string[] = only.filter((field) => action[field] !== '');
  if (action.remove && action.kind === 'response_header' && action.append) unwanted.push('append');
  if (!action.remove && action.expression !== '' && action.value !== '') unwanted.push('value');
  return [...issues, ...unwanted.map((field) => issue(`/${field}`, 'forbidden'))];
}

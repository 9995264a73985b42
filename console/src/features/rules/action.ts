// What rules do: which actions a phase has, a new one of each kind, and what of them does not fit together. Pure; the
// contract's schemas are handed in, because pages have them as data.

import type { Issue } from '../../../../contract/errors.ts';
import { PHASES, type Phase } from '../../../../contract/expression/phases.ts';
import { isFixedTarget } from '../../../../contract/expression/results.ts';
import { isProtectedHeader } from '../../../../contract/scalars/rule-headers.ts';
import { issuesOf, type JsonSchema } from '../../shared/forms/schema.ts';
import type { ActionKind, ActionOf, RuleAction } from './rule.ts';

/** What pages know of the contract. */
export interface ActionContract {
  RULE_ACTIONS: Readonly<Record<ActionKind, JsonSchema>>;
  ACTION_PHASES: Readonly<Record<ActionKind, readonly Phase[]>>;
  CACHE_PHASE_CONFIG: readonly string[];
}

/** Kinds that can stand in a phase, in the contract's order. */
export function kindsOf({ ACTION_PHASES }: Pick<ActionContract, 'ACTION_PHASES'>, phase: Phase): ActionKind[] {
  return (Object.keys(ACTION_PHASES) as ActionKind[]).filter((kind) => ACTION_PHASES[kind].includes(phase));
}

/** The first phase of a kind, in the order of execution. */
export function phaseOf({ ACTION_PHASES }: Pick<ActionContract, 'ACTION_PHASES'>, kind: ActionKind): Phase {
  return PHASES.find((phase) => ACTION_PHASES[kind].includes(phase))!;
}

/** What has no default of the contract's and has to be something. */
const FIRST: { [K in ActionKind]?: Partial<ActionOf<K>> } = {
  rate_limit: { limit: 100, windowSeconds: 60, key: 'ip.src' },
  compression: { algorithms: ['zstd', 'br', 'gzip'] },
};

/** A new action of a kind, with the defaults of the contract. */
export function newAction({ RULE_ACTIONS }: Pick<ActionContract, 'RULE_ACTIONS'>, kind: ActionKind): RuleAction {
  const properties = Object.entries(RULE_ACTIONS[kind].properties ?? {});
  const given = properties.flatMap(([name, schema]) =>
    schema.default === undefined ? [] : [[name, structuredClone(schema.default)]],
  );
  const texts = kind.endsWith('_header') ? { header: '' } : {};
  return { ...Object.fromEntries(given), ...texts, ...FIRST[kind], kind } as RuleAction;
}

/** Fields of config that a phase has. */
export function configFields({ RULE_ACTIONS, CACHE_PHASE_CONFIG }: ActionContract, phase: Phase): string[] {
  const all = Object.keys(RULE_ACTIONS.config.properties ?? {}).filter((name) => name !== 'kind');
  return phase === 'cache' ? all.filter((name) => CACHE_PHASE_CONFIG.includes(name)) : all;
}

/** What is wrong with an action, by the contract and between its fields; paths begin with a slash below the action. */
export function actionIssues(contract: ActionContract, phase: Phase, action: RuleAction): Issue[] {
  const found = issuesOf(contract.RULE_ACTIONS[action.kind], action);
  return found.length > 0 ? found : together(contract, phase, action);
}

const issue = (path: string, keyword: string): Issue => ({ path, keyword, params: {} });

/** As services/rules/check-action.ts judges it; what rests on the names of hosts is left to that. */
function together(contract: ActionContract, phase: Phase, action: RuleAction): Issue[] {
  if (!contract.ACTION_PHASES[action.kind].includes(phase)) return [issue('/kind', 'phase')];
  switch (action.kind) {
    case 'redirect':
    case 'rewrite':
      return targetIssues(action);
    case 'request_header':
    case 'response_header':
      return isProtectedHeader(action.header.toLowerCase()) ? [issue('/header', 'forbiddenName')] : [];
    case 'config': {
      const { kind: _kind, ...given } = action;
      const has = configFields(contract, phase);
      const wrong = Object.keys(given).find((name) => !has.includes(name));
      if (wrong !== undefined) return [issue(`/${wrong}`, 'phase')];
      return Object.keys(given).length > 0 ? [] : [issue('', 'noChange')];
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
  if (value === '' && target === '') return [issue('/value', 'valueOrTarget')];
  const issues =
    value !== '' && !isFixedTarget(kind, value)
      ? [issue('/value', kind === 'redirect' ? 'redirectTarget' : 'rewriteTarget')]
      : [];
  const names = setQuery.map(({ name }) => name);
  const repeated = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (repeated >= 0) issues.push(issue(`/setQuery/${repeated}/name`, 'repeated'));
  const both = removeQuery.findIndex((name) => names.includes(name));
  return both < 0 ? issues : [...issues, issue(`/removeQuery/${both}`, 'repeated')];
}

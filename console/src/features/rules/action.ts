// What rules do: which actions a phase has, a new one of each kind, and what of them does not fit together. Pure; the
// contract's schemas are handed in, because pages have them as data.

import type { Issue } from '../../../../contract/errors.ts';
import { PHASES, type Phase } from '../../../../contract/expression/phases.ts';
import { type ActionTables, actionIssues } from '../../../../contract/scalars/action-issues.ts';
import { issuesOf, type JsonSchema } from '../../shared/forms/schema.ts';
import type { ActionKind, ActionOf, RuleAction } from './rule.ts';

/** What pages know of the contract. */
export interface ActionContract extends ActionTables {
  RULE_ACTIONS: Readonly<Record<ActionKind, JsonSchema>>;
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
export function problemsOfAction(contract: ActionContract, phase: Phase, action: RuleAction): Issue[] {
  const found = issuesOf(contract.RULE_ACTIONS[action.kind], action);
  return found.length > 0 ? found : actionIssues(contract, phase, action);
}

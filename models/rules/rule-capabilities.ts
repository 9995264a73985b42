// Capabilities that a rule needs of nodes (specification: Rules): those of its expressions, and those of its action.
import type { RuleAction } from '../../contract/scalars/rule-action.ts';
import type { CheckedRule } from './rule-message.ts';

/** What every node with rules can do. */
const BASE = 'rules-v1';

/** Fields of the config action that came first; gzip could only be switched off. */
const FIRST_CONFIG: readonly string[] = ['kind', 'cacheBypass', 'forceHttps', 'gzip'];

/** Capabilities of the rules, sorted, each once; none for no rules. */
export function capabilitiesOfRules(rules: readonly CheckedRule[]): string[] {
  const needed = rules.flatMap(({ rule, facts }) => [
    BASE,
    ...facts.flatMap(({ capabilities }) => capabilities),
    ...featuresOfAction(rule.action),
  ]);
  return [...new Set(needed)].sort();
}

function featuresOfAction(action: RuleAction): string[] {
  switch (action.kind) {
    case 'challenge':
      return ['challenge-v1'];
    case 'redirect':
      return [...featuresOfQuery(action), ...(action.statusCode === 303 ? ['rules-v3'] : [])];
    case 'rewrite':
      return featuresOfQuery(action);
    case 'request_header':
      return action.expression === '' ? [] : ['rules-v3'];
    case 'response_header':
      return action.expression !== '' || action.append ? ['rules-v3'] : [];
    case 'config': {
      const isNew = action.gzip === true || Object.keys(action).some((field) => !FIRST_CONFIG.includes(field));
      const challenges = action.underAttack || action.ccEnabled || action.ccMaxLevel !== undefined;
      return [...(isNew ? ['rules-v2'] : []), ...(challenges ? ['challenge-v1'] : [])];
    }
    case 'rate_limit':
      return action.key === 'tls.ja4' ? ['ja4-v1'] : [];
    case 'origin':
    case 'compression':
      return ['rules-v2'];
    case 'block':
    case 'log':
    case 'allow':
      return [];
  }
}

function featuresOfQuery({ setQuery, removeQuery }: Extract<RuleAction, { kind: 'redirect' | 'rewrite' }>): string[] {
  const computed = setQuery.some(({ expression }) => expression !== '');
  return [...(setQuery.length + removeQuery.length > 0 ? ['rules-v2'] : []), ...(computed ? ['rules-v3'] : [])];
}

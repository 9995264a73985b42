// Rules as a file: what is written out, and what is read from one that somebody wrote. Pure.
import type { Issue } from '../../../../contract/errors.ts';
import { PHASES } from '../../../../contract/expression/phases.ts';
import { issuesOf, type JsonSchema } from '../../shared/forms/schema.ts';
import { type ActionContract, newAction } from './action.ts';
import { type DraftRule, inputOf, type RuleAction } from './rule.ts';

/** The file's text; ids go along, so that reading it again changes rules and makes none. */
export function rulesFile(rules: readonly DraftRule[]): string {
  return `${JSON.stringify({ rules: inputOf(rules) }, null, 2)}\n`;
}

export interface FileProblem {
  /** Place of the rule in the file, from 1; 0: the file as a whole. */
  rule: number;
  issue: Issue;
}

export interface ReadFile {
  rules: DraftRule[];
  problems: FileProblem[];
}

const whole = (keyword: string, params: Record<string, unknown> = {}): ReadFile => ({
  rules: [],
  problems: [{ rule: 0, issue: { path: '', keyword, params } }],
});

/** What a file of another size would be is no list of rules. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;

/**
 * The rules of a file: an object with `rules`, or their list alone. Ids that none of `known` has are left out; fields that
 * have a default may be left out. `ruleSchema` is of a rule without its action.
 */
export function readRulesFile(
  text: string,
  contract: Pick<ActionContract, 'RULE_ACTIONS'>,
  ruleSchema: JsonSchema,
  known: ReadonlySet<string>,
  most: number,
  nextKey: () => string,
): ReadFile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return whole('json');
  }
  const list = Array.isArray(value) ? value : (value as { rules?: unknown } | null)?.rules;
  if (!Array.isArray(list)) return whole('rulesFile');
  if (list.length > most) return whole('maxItems', { limit: most });
  const taken = new Set<string>();
  const rules: DraftRule[] = [];
  const problems: FileProblem[] = [];
  list.forEach((item: unknown, index) => {
    const { rule, issues } = readRule(item, contract, ruleSchema);
    for (const issue of issues) problems.push({ rule: index + 1, issue });
    if (!rule) return;
    const { id, ...rest } = rule;
    const own = id !== undefined && known.has(id) && !taken.has(id);
    if (own) taken.add(id);
    rules.push(own ? { ...rest, id, key: id } : { ...rest, key: nextKey() });
  });
  return { rules, problems };
}

type Item = Omit<DraftRule, 'key'>;

function readRule(
  item: unknown,
  contract: Pick<ActionContract, 'RULE_ACTIONS'>,
  ruleSchema: JsonSchema,
): { rule: Item | null; issues: Issue[] } {
  if (typeof item !== 'object' || item === null || Array.isArray(item))
    return { rule: null, issues: [{ path: '', keyword: 'object', params: {} }] };
  const { action, enabled = false, ...rest } = item as Record<string, unknown>;
  const kind = (action as { kind?: unknown } | null | undefined)?.kind;
  const { action: _action, ...properties } = ruleSchema.properties ?? {};
  const issues = issuesOf({ ...ruleSchema, required: ['name', 'phase', 'expression'], properties } as JsonSchema, {
    ...rest,
    enabled,
  });
  if (typeof kind !== 'string' || !Object.hasOwn(contract.RULE_ACTIONS, kind))
    return { rule: null, issues: [...issues, { path: '/action/kind', keyword: 'enum', params: {} }] };
  const filled = filledAction(contract, action as RuleAction);
  const wrong = issuesOf(contract.RULE_ACTIONS[filled.kind], filled);
  const all = named([...issues, ...wrong.map((issue) => ({ ...issue, path: `/action${issue.path}` }))]);
  if (all.length > 0 || !PHASES.includes(rest.phase as never)) return { rule: null, issues: all };
  return { rule: { ...rest, enabled, action: filled } as Item, issues: [] };
}

/** One problem for each place; what is unknown is told of itself and not of what it is in. */
function named(issues: readonly Issue[]): Issue[] {
  const told = issues
    .filter(({ keyword }) => keyword !== 'additionalProperties')
    .map((issue) => (issue.keyword === 'boolean' ? { ...issue, keyword: 'additionalProperties' } : issue));
  return [...new Map(told.toReversed().map((issue) => [issue.path, issue])).values()].toReversed();
}

/** With the contract's defaults where the file has nothing; what no default can be stays missing, and is told. */
function filledAction(contract: Pick<ActionContract, 'RULE_ACTIONS'>, action: RuleAction): RuleAction {
  const needed = (contract.RULE_ACTIONS[action.kind] as { required?: readonly string[] }).required ?? [];
  const standard = newAction(contract, action.kind) as unknown as Record<string, unknown>;
  const properties = contract.RULE_ACTIONS[action.kind].properties ?? {};
  const defaults = needed.flatMap((name) =>
    properties[name]?.default === undefined ? [] : [[name, standard[name]] as const],
  );
  const filled = { ...Object.fromEntries(defaults), ...action } as unknown as Record<string, unknown>;
  if (Array.isArray(filled.setQuery))
    filled.setQuery = filled.setQuery.map((each: unknown) =>
      typeof each === 'object' && each !== null ? { value: '', expression: '', ...each } : each,
    );
  return filled as unknown as RuleAction;
}

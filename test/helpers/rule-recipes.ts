// The recipes of docs/rules-cookbook.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../bin/lib/root.ts';
import type { Input } from '../../contract/procedure.ts';
import type { ruleTrial } from '../../contract/resources/rule-trial.ts';
import type { RuleInput } from '../../contract/scalars/rule.ts';
import type { RuleTrace } from '../../contract/scalars/rule-trace.ts';
import { type RunExpectation, summaryOf } from './rule-runs.ts';

type Tried = Input<typeof ruleTrial.try>;

export interface Recipe {
  title: string;
  /** IP lists that its rules name, with their entries. */
  lists: Record<string, string[]>;
  rules: RuleInput[];
  tries: { request: Tried['request']; response?: Tried['response']; becomes: RunExpectation }[];
}

const BLOCK = /^```json (lists|rules|tries)\n([\s\S]*?)^```$/gm;

/** As they stand there. */
export function recipes(): Recipe[] {
  const [, ...parts] = readFileSync(join(root, 'docs/rules-cookbook.md'), 'utf8').split(/^### /m);
  return parts.map((part) => {
    const blocks = Object.fromEntries([...part.matchAll(BLOCK)].map(([, name, text]) => [name, JSON.parse(text!)]));
    return { title: part.split('\n', 1)[0]!, lists: {}, rules: [], tries: [], ...blocks };
  });
}

/** What became of a request, with the names of rules: what the recipe says of it, and of what it does not say nothing. */
export function becameOf(trace: RuleTrace, { request, becomes }: Recipe['tries'][number]): RunExpectation {
  const uri = request.url.replace(/^https?:\/\/[^/]*/, '');
  const names = new Map(trace.phases.flatMap(({ rules }) => rules.map(({ id, name }) => [id, name])));
  const named = (ids: string[]) => ids.map((id) => names.get(id)!);
  const { kind = 'origin', rule, matched = [], limits = [], ...rest } = summaryOf(trace, uri);
  const all = { ...rest, kind, rule: names.get(rule ?? ''), matched: named(matched), limits: named(limits) };
  return Object.fromEntries(Object.entries(all).filter(([field]) => field in becomes));
}

// Warnings about rules: what can be seen of them that is hardly meant.
import type { Static } from 'typebox';
import { checkCondition } from '../../../contract/expression/expression.ts';
import { PHASES } from '../../../contract/expression/phases.ts';
import type { Condition } from '../../../contract/expression/tree.ts';
import type { RuleWarning } from '../../../contract/resources/rules.ts';
import { RULE_WARNINGS, type RuleWarningCode } from '../../../contract/rule-warnings.ts';
import { type Cidr, parseAddress } from '../../../contract/scalars/cidr.ts';
import { headerOfKey } from '../../../contract/scalars/rule-action.ts';
import type { CheckedRule } from '../../../models/rules/rule-message.ts';
import { evaluateCondition } from '../evaluate/evaluate.ts';
import { countryWarnings } from './countries.ts';
import { isNever, Shape } from './implies.ts';
import { missingMatches } from './missing.ts';
import { patternWarnings } from './patterns.ts';

type Warning = Static<typeof RuleWarning>;

export interface WarningContext {
  /** Of who saves or reads the rules; null when it is not known. */
  readonly address: string | null;
  /** Names of the IP lists that have that address. */
  readonly lists: ReadonlySet<string>;
  /** Whether some node that gets the rules cannot tell JA4. */
  readonly ja4Held: boolean;
}

/** Warnings about `rules`, which run after those of the platform in each phase; of the platform's own `platform` is empty. */
export function ruleWarnings(
  rules: readonly CheckedRule[],
  platform: readonly CheckedRule[],
  context: WarningContext,
): Warning[] {
  const all = [...platform.map((rule) => placed(rule, true)), ...rules.map((rule) => placed(rule, false))];
  const enders = all.filter(({ rule }) => rule.enabled && ENDING.includes(rule.action.kind));
  return all
    .filter(({ ofPlatform }) => !ofPlatform)
    .flatMap((each) => [
      ...unreached(each, enders, all),
      ...ofCondition(each, all, context),
      ...ofNeeds(each, context),
    ]);
}

/** Kinds that end a request, or its list. */
const ENDING: readonly string[] = ['block', 'redirect', 'allow'];
/** In the phase after it, rules may edit what was compared before. */
const LAST_STABLE = PHASES.indexOf('cache');
const LAST_OF_REQUEST = PHASES.indexOf('origin');

interface Placed {
  readonly rule: CheckedRule['rule'];
  readonly checked: CheckedRule;
  readonly condition: Condition;
  readonly shape: Shape;
  readonly ofPlatform: boolean;
  readonly phase: number;
}

function placed(checked: CheckedRule, ofPlatform: boolean): Placed {
  const condition = checked.condition as Condition;
  const { rule } = checked;
  return { rule, checked, condition, ofPlatform, shape: new Shape(condition), phase: PHASES.indexOf(rule.phase) };
}

function warning({ rule }: Placed, code: RuleWarningCode, params: Readonly<Record<string, string>> = {}): Warning {
  const message = RULE_WARNINGS[code].replace(/\{([a-z]+)\}/g, (_, name: string) => params[name] ?? '');
  return { ruleId: rule.id, code, params, message };
}

/** At most one reason why no request comes to a rule. */
function unreached(each: Placed, enders: readonly Placed[], all: readonly Placed[]): Warning[] {
  if (isNever(each.condition)) return [warning(each, 'never_matches')];
  for (const ender of enders) {
    if (!endsBefore(ender, each, all)) continue;
    if (ender.shape.isTrue) return [warning(each, 'after_end', { rule: ender.rule.name })];
    if (each.phase <= LAST_STABLE && each.shape.implies(ender.shape)) {
      return [warning(each, 'covered', { rule: ender.rule.name })];
    }
  }
  return [];
}

/** Whether requests that one ends would have come to the other later. */
function endsBefore(ender: Placed, later: Placed, all: readonly Placed[]): boolean {
  if (later.phase > LAST_OF_REQUEST || ender.phase > later.phase) return false;
  const sameList = ender.phase === later.phase && ender.ofPlatform === later.ofPlatform;
  if (sameList) return all.indexOf(ender) < all.indexOf(later);
  if (ender.rule.action.kind === 'allow') return false;
  // What a rule of its list allowed passes it by, and may come to the other.
  const passed = all.some(
    (one) =>
      one.rule.enabled &&
      one.rule.action.kind === 'allow' &&
      one.ofPlatform === ender.ofPlatform &&
      one.phase === ender.phase,
  );
  return !passed && (ender.phase < later.phase || ender.ofPlatform);
}

function ofCondition(each: Placed, all: readonly Placed[], context: WarningContext): Warning[] {
  const trees = [each.condition, ...each.checked.values.values()];
  return [
    ...missingMatches(each.condition).map((field) => warning(each, 'missing_matches', { field })),
    ...(blocksYou(each, all, context) ? [warning(each, 'blocks_you', { address: context.address! })] : []),
    ...countryWarnings(each.condition).map((params) => warning(each, 'unknown_country', params)),
    ...trees.flatMap(patternWarnings).map(({ code, params }) => warning(each, code, params)),
  ];
}

/** Whether it blocks the address whatever else is asked for, and no rule before it allows that. */
function blocksYou(each: Placed, all: readonly Placed[], context: WarningContext): boolean {
  const address = context.address === null ? null : parseAddress(context.address);
  if (!address || each.rule.action.kind !== 'block' || !holdsFor(each, address, context)) return false;
  const before = all
    .slice(0, all.indexOf(each))
    .filter((one) => one.rule.enabled && one.ofPlatform === each.ofPlatform);
  return !before.some((one) => one.rule.action.kind === 'allow' && holdsFor(one, address, context));
}

/** Whether a condition that depends on the address of a visitor alone holds for one. */
function holdsFor({ checked, condition }: Placed, address: Cidr, { lists }: WarningContext): boolean {
  if (!checked.facts[0]!.fields.every((field) => field === 'ip.src')) return false;
  const holds = evaluateCondition(condition, { field: () => address, inList: (list) => lists.has(list) });
  return holds.ok && holds.value;
}

function ofNeeds(each: Placed, { ja4Held }: WarningContext): Warning[] {
  const { action } = each.rule;
  const key = action.kind === 'rate_limit' ? action.key : '';
  const readsJa4 = key === 'tls.ja4' || each.checked.facts.some(({ fields }) => fields.includes('tls.ja4'));
  const header = headerOfKey(key);
  return [
    ...(ja4Held && readsJa4 ? [warning(each, 'ja4_held')] : []),
    ...(header !== null && !asksFor(each.shape, header) ? [warning(each, 'key_missing', { header })] : []),
  ];
}

/** Whether only requests with the header are counted. */
function asksFor(shape: Shape, header: string): boolean {
  const there = checkCondition(`http.request.headers[${JSON.stringify(header)}] ne ""`, { phase: 'ratelimit' });
  return there.valid && shape.implies(new Shape(there.tree));
}

// What each rule of the rule set is. The texts come in a chunk of their own, with the first who asks.
import type { WafOfSite } from '@contract/resources/site-waf.ts';

export interface WafRule {
  id: number;
  /** As the rule set has it, in English. */
  message: string;
  severity: string;
  /** The lowest paranoia level at which it runs. */
  paranoia: number;
  /** Divided by spaces. */
  tags: string;
}

/** Families of rules of requests, by the first three digits of their ids. */
export const FAMILIES = [911, 913, 920, 921, 922, 930, 931, 932, 933, 934, 941, 942, 943, 944] as const;

/** All rules, ascending. */
export async function loadRules(): Promise<readonly WafRule[]> {
  return (await import('@contract/waf-rules.json')).default;
}

/** By the first three digits of its id. */
export const RULES_IN_FAMILY = 1000;

export function familyOf(id: number): number {
  return Math.floor(id / RULES_IN_FAMILY);
}

/** Whether a rule is of a family that has words here. */
export function hasFamily(id: number): boolean {
  return FAMILIES.some((family) => family === familyOf(id));
}

/** Rules of which one of the texts or the id has each word of a search, and of one family where it is given. */
export function findRules(rules: readonly WafRule[], search: string, family: number | null): WafRule[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return rules.filter((rule) => {
    if (family !== null && familyOf(rule.id) !== family) return false;
    const text = `${rule.id} ${rule.message} ${rule.tags}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** How many rules run for every request of a site with these settings. */
export function runningRules(
  rules: readonly WafRule[],
  {
    paranoiaLevel,
    excludedRuleIds,
    excludedFamilies,
  }: Pick<WafOfSite, 'paranoiaLevel' | 'excludedRuleIds' | 'excludedFamilies'>,
): number {
  const runs = ({ id, paranoia }: WafRule) =>
    paranoia <= paranoiaLevel && !excludedRuleIds.includes(id) && !excludedFamilies.includes(familyOf(id));
  return rules.filter(runs).length;
}

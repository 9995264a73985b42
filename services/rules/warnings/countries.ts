// Countries that no client comes from: conditions on ip.geoip.country with a text that is no ISO 3166 code.
import { COUNTRY_CODES } from '../../../contract/country-codes.ts';
import { type Condition, type Tree, walk } from '../../../contract/expression/tree.ts';
import { evaluateCondition } from '../evaluate/evaluate.ts';

/** Values of the field: every code, and "" for an unknown country. */
const VALUES = ['', ...COUNTRY_CODES];
/** Codes in common use that ISO 3166 does not assign. */
const USUAL: Readonly<Record<string, string>> = { UK: 'GB', EL: 'GR' };
const EXAMPLE = 'DE';
const NAMES = new Map<string, string>();

/** Each text once, with the code to use. A condition that holds for some codes only is meant as it is. */
export function countryWarnings(condition: Condition): { country: string; use: string }[] {
  const found = new Set<string>();
  collect(condition, found);
  return [...found].map((country) => ({ country, use: codeFor(country) }));
}

function collect(node: Condition, found: Set<string>): void {
  switch (node.op) {
    case 'and':
    case 'or':
      for (const child of node.children) collect(child, found);
      return;
    case 'not':
      collect(node.child, found);
      return;
    case 'in':
      if (!readsCountryOnly(node)) return;
      for (const value of node.values) {
        const single: Condition = { op: 'eq', operand: node.operand, value, at: node.at, end: node.end };
        if (isConstant(single)) found.add(String(value));
      }
      return;
    default: {
      const text = textOf(node);
      if (text !== null && readsCountryOnly(node) && isConstant(node)) found.add(text);
    }
  }
}

function readsCountryOnly(node: Tree): boolean {
  let [reads, others] = [false, false];
  walk(node, (each) => {
    if (each.op !== 'field') return;
    if (each.field === 'ip.geoip.country') reads = true;
    else others = true;
  });
  return reads && !others;
}

/** Whether it has the same result for every country and for an unknown one. */
function isConstant(node: Condition): boolean {
  const results = new Set<boolean>();
  for (const value of VALUES) {
    const result = evaluateCondition(node, { field: () => value, inList: () => false });
    if (!result.ok) return false;
    results.add(result.value);
    if (results.size > 1) return false;
  }
  return true;
}

/** The text that the country is compared with; null when there is none. */
function textOf(node: Condition): string | null {
  if ('value' in node && typeof node.value === 'string') return node.value;
  let text: string | null = null;
  walk(node, (each) => {
    if (each.op === 'text') text ??= each.value;
  });
  return text;
}

function codeFor(text: string): string {
  const upper = text.trim().toUpperCase();
  if (COUNTRY_CODES.includes(upper)) return upper;
  if (NAMES.size === 0) {
    const names = new Intl.DisplayNames('en', { type: 'region' });
    for (const code of COUNTRY_CODES) NAMES.set(names.of(code)!.toUpperCase(), code);
  }
  return USUAL[upper] ?? NAMES.get(upper) ?? EXAMPLE;
}

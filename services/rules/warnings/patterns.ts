// Patterns that cost more than they need to.
import { parseRegex } from '../../../contract/expression/regex.ts';
import { type Tree, walk } from '../../../contract/expression/tree.ts';
import { programSize } from '../evaluate/regex-program.ts';

/** Instructions of a pattern that nobody writes by chance: some bounded repetitions with large bounds. */
const MANY_INSTRUCTIONS = 2000;

export interface PatternWarning {
  readonly code: 'costly_pattern' | 'pattern_start';
  readonly params: Readonly<Record<string, string>>;
}

/** Of a condition or a value, each pattern once. */
export function patternWarnings(tree: Tree): PatternWarning[] {
  const warnings = new Map<string, PatternWarning>();
  for (const { pattern, finds } of patternsOf(tree)) {
    const size = programSize(parseRegex(pattern));
    if (size > MANY_INSTRUCTIONS) {
      warnings.set(`size ${pattern}`, { code: 'costly_pattern', params: { pattern, size: String(size) } });
    }
    // Of a replacement it is a part of what is replaced.
    if (finds && /^\.\*/.test(pattern)) {
      warnings.set(`start ${pattern}`, { code: 'pattern_start', params: { pattern } });
    }
  }
  return [...warnings.values()];
}

function patternsOf(tree: Tree): { pattern: string; finds: boolean }[] {
  const patterns: { pattern: string; finds: boolean }[] = [];
  walk(tree, (node) => {
    if (node.op === 'matches') patterns.push({ pattern: String(node.value), finds: true });
    if (node.op !== 'call' || node.function !== 'regex_replace') return;
    const [, pattern] = node.args;
    if (pattern?.op === 'text') patterns.push({ pattern: pattern.value, finds: false });
  });
  return patterns;
}

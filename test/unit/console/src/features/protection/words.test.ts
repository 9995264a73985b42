// Whatever is told of attacks has words in both languages.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../../../../bin/lib/root.ts';
import { SECURITY_EVENT_KINDS } from '../../../../../../contract/resources/security.ts';
import { LEVELS } from '../../../../../../contract/scalars/challenge.ts';
import { LANGUAGES, messages } from '../../../../../helpers/console-sources.ts';

const evaluate = readFileSync(join(root, 'agents/caddy/features/cc/evaluate.go'), 'utf8');
/** Those of nodes, and the console's own. */
const metrics = [...evaluate.matchAll(/^\s*metric[A-Za-z]+\s*= "([a-z_]+)"/gm)]
  .map((match) => match[1]!)
  .concat('waf_share');

for (const [group, names] of [
  ['level', LEVELS],
  ['challengeHelp', LEVELS.slice(1)],
  ['kind', SECURITY_EVENT_KINDS],
  ['metric', metrics],
] as const) {
  test(`every ${group} has words, and no words are left over`, (t) => {
    for (const language of LANGUAGES) {
      const there = [...messages(language).keys()].filter((key) => key.startsWith(`protection.${group}.`));
      t.deepEqual(there.map((key) => key.split('.').at(-1)).sort(), [...names].sort());
    }
    t.true(names.length >= 3);
  });
}

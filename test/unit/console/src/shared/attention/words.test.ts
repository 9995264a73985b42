// Whatever needs somebody has words in both languages, and no words are left over.
import test from 'ava';
import { FAILURE_CAUSES } from '../../../../../../contract/failure-causes.ts';
import { ATTENTION_KINDS, NODE_WORDS } from '../../../../../../contract/resources/overview.ts';
import { LEVELS } from '../../../../../../contract/scalars/challenge.ts';
import { LANGUAGES, messages } from '../../../../../helpers/console-sources.ts';

for (const [group, names] of [
  ['kind', ATTENTION_KINDS],
  ['word', [...NODE_WORDS, ...LEVELS, 'unserved']],
  ['problem', ['unreachable', 'mismatch', 'refused', ...FAILURE_CAUSES]],
] as const)
  test(`every ${group} has words`, (t) => {
    for (const language of LANGUAGES) {
      const there = [...messages(language).keys()].filter((key) => key.startsWith(`attention.${group}.`));
      t.deepEqual(there.map((key) => key.split('.').at(-1)).sort(), [...names].sort());
    }
  });

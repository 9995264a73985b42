// The recipes of docs/rules-cookbook.md are saved as they stand there, and tried as they were saved.
import test from 'ava';
import type { RuleTrace } from '../../contract/scalars/rule-trace.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';
import { becameOf, recipes } from '../helpers/rule-recipes.ts';

let running: TestConsole;
let api: Api;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always('stop', () => running?.stop());

test('every recipe is taken, and does what it says', async (t) => {
  const clusterId = await api.cluster('cooking');
  const origins = [{ address: 'origin.example' }, { address: 'api.example', group: 'api' }];
  const { id } = await api.site(clusterId, 'www.example.com', { origins });
  const lists = new Set<string>();
  for (const recipe of recipes()) {
    for (const [name, entries] of Object.entries(recipe.lists)) {
      if (!lists.has(name)) await api.ok('POST', '/ip-lists', { name, kind: 'collection', entries });
      lists.add(name);
    }
    const saved = await api.ok('PUT', `/sites/${id}/rules`, { rules: recipe.rules });
    t.is(saved.rules.length, recipe.rules.length);
    for (const tried of recipe.tries) {
      const { becomes, ...asked } = tried;
      const trace = await api.ok('POST', `/sites/${id}/rules/try`, asked);
      t.deepEqual(becameOf(trace as RuleTrace, tried), becomes, `${recipe.title}: ${JSON.stringify(asked)}`);
    }
  }
});

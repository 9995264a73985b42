// The recipes of docs/rules-cookbook.md, run as they stand there.
import test from 'ava';
import type { Input } from '../../../../contract/procedure.ts';
import { ruleTrial } from '../../../../contract/resources/rule-trial.ts';
import { contains, parseCidr } from '../../../../contract/scalars/cidr.ts';
import { validateInput } from '../../../../runtime/validate.ts';
import { checkRules } from '../../../../services/rules/check-rules.ts';
import { runRule } from '../../../../services/rules/run/from-rule.ts';
import { runRules } from '../../../../services/rules/run/run.ts';
import { runRequest, withNormalPath } from '../../../../services/rules/tried-request.ts';
import { ruleWarnings } from '../../../../services/rules/warnings/warnings.ts';
import { becameOf, type Recipe, recipes } from '../../../helpers/rule-recipes.ts';

const GROUPS = new Set(['api']);

function run({ rules, lists }: Recipe, { request, response }: Recipe['tries'][number]) {
  const given = { id: 'site', request, rules, ...(response ? { response } : {}) };
  const input = validateInput(ruleTrial.try, given) as Input<typeof ruleTrial.try>;
  return runRules(withNormalPath(runRequest(input.request, input.response, new Date())), {
    rules: checkRules(input.rules!, [], GROUPS).map((rule, at) => runRule(rule, at, false)),
    inList: (name, address) => lists[name]!.some((cidr) => contains(parseCidr(cidr)!, address)),
    allowLists: [],
    blockLists: [],
    bulkRedirect: () => undefined,
    bodyLimit: 0,
    https: () => null,
  });
}

test('requests become what the recipes say', (t) => {
  const all = recipes();
  t.is(all.length, 30);
  for (const recipe of all) {
    t.true(recipe.rules.length > 0 && recipe.tries.length > 0, recipe.title);
    for (const tried of recipe.tries) {
      const trace = run(recipe, tried);
      t.deepEqual(becameOf(trace, tried), tried.becomes, `${recipe.title}: ${JSON.stringify(tried.request)}`);
      t.true(trace.complete && trace.unknown.length === 0, recipe.title);
    }
  }
});

test('each rule of a recipe matches one of its requests, and most recipes have one that it does not concern', (t) => {
  let untouched = 0;
  for (const recipe of recipes()) {
    const runs = recipe.tries.map((tried) => run(recipe, tried).phases.flatMap(({ rules }) => rules));
    const matched = new Set(
      runs
        .flat()
        .filter(({ result }) => result === 'matched')
        .map(({ name }) => name),
    );
    t.deepEqual(
      recipe.rules.map(({ name }) => name).filter((name) => !matched.has(name)),
      [],
      recipe.title,
    );
    if (runs.some((rules) => rules.every(({ result }) => result !== 'matched'))) untouched++;
  }
  t.true(untouched > 20);
});

test('nothing of a recipe is warned of', (t) => {
  for (const { title, rules, lists } of recipes()) {
    const input = validateInput(ruleTrial.try, { id: 's', request: { url: 'http://a/', address: '::1' }, rules });
    const checked = checkRules((input as Input<typeof ruleTrial.try>).rules!, [], GROUPS);
    const context = { address: '203.0.113.1', lists: new Set(Object.keys(lists)), ja4Held: false };
    t.deepEqual(ruleWarnings(checked, [], context), [], title);
  }
});

// `npm run new -- resource NAME`: the files of a new resource, from the contract to its page, ready to be filled in.
import { parseArgs } from 'node:util';
import { generated, regenerate } from './lib/generated.ts';
import { newResource } from './lib/new-resource.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const HELP = `Usage: npm run new -- resource NAME

Writes a resource with one object, in files of its own: contract, errors, migration, model, entry, service, page, words in
both languages, and what the test of the whole surface needs. NAME is its plural in kebab-case, such as alert-rules.
Existing files stay as they are, but for the registers, which are generated again.`;

try {
  const { values, positionals } = parseArgs({
    options: { help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
  });
  const [what, name, ...more] = positionals;
  if (values.help) say(HELP);
  else if (what !== 'resource' || name === undefined || more.length > 0) throw new Refusal(HELP);
  else await write(name);
} catch (error) {
  report(error);
}

async function write(name: string): Promise<void> {
  for (const file of newResource(root, name)) say(`  ${file}`);
  for (const target of generated) if (target.name.startsWith('registers of')) await regenerate(target);
  say('\nNext: fill in the fields, run `npm run format`, `npm run generate` and `npm test -- --changed`.');
}

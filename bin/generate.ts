// `npm run generate`: writes every generated file again.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { run } from './lib/commands.ts';
import { buf, generated, protoBaseline, regenerate } from './lib/generated.ts';
import { during, Refusal, report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const HELP = `Usage: npm run generate [-- --only NAME] [--proto-baseline]

Rewrites the generated files: ${generated.map(({ path }) => path).join(', ')}.

  --only NAME        only these: ${generated.map(({ name }) => `'${name}'`).join(', ')}
  --proto-baseline   also makes the present proto/ the baseline for later wire changes. Use it only after a release
                     whose nodes understand it: the check rejects changes that break deployed nodes.`;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    'proto-baseline': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

try {
  if (values.help) {
    say(HELP);
  } else {
    const wanted = generated.filter(({ name }) => values.only === undefined || name === values.only);
    if (wanted.length === 0) throw new Refusal(`${values.only} is not a generated part; see --help`);
    for (const target of wanted) if (target.applies()) await during(target.name, () => regenerate(target));
    if (values['proto-baseline'] || !existsSync(protoBaseline)) {
      await during('wire baseline', async () => {
        await run(buf, ['build', 'proto', '--output', protoBaseline], { cwd: root, timeout: 60_000 });
      });
    }
  }
} catch (error) {
  say((error as { stderr?: string }).stderr ?? '');
  report(error);
}

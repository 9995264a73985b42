// `npm run migrate`: brings the schema of DATABASE_DIRECT_URL or DATABASE_URL up to date and ends.
import { migrate } from '../migrations/run.ts';
import { Refusal, report, say } from './lib/progress.ts';

const HELP = `Usage: DATABASE_URL=postgres://… npm run migrate

Applies the migrations the database lacks. Running it again, or from several places at once, is safe.
DATABASE_DIRECT_URL wins over DATABASE_URL: migrations need a connection without a transaction pooler.`;

try {
  if (process.argv.includes('--help')) {
    say(HELP);
  } else {
    const url = process.env.DATABASE_DIRECT_URL || process.env.DATABASE_URL;
    if (!url) throw new Refusal(`DATABASE_URL is missing.\n\n${HELP}`);
    const applied = await migrate(url, ({ name, index, total }) => say(`migration ${index} of ${total}: ${name}`));
    say(applied.length === 0 ? 'the schema is up to date' : `${applied.length} migrations and functions were applied`);
  }
} catch (error) {
  report(error);
}

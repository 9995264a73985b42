// `npm run recover`: what an administrator does by hand after an accident.
import { declareRestored } from '../mixins/history.ts';
import { Refusal, report, say } from './lib/progress.ts';

const HELP = `Usage: DATABASE_URL=postgres://… npm run recover -- restored

  restored   after the database was restored from a backup: begins a new epoch, so that every node compares its state
             with the console's and keeps nothing that the restored database does not know. Harmless when in doubt.
             A restore onto another server, and one that nodes or streams are ahead of, is noticed without it.`;

try {
  const command = process.argv[2];
  if (command === '--help' || command === 'help') {
    say(HELP);
  } else if (command === 'restored' && process.argv.length === 3) {
    const url = process.env.DATABASE_DIRECT_URL || process.env.DATABASE_URL;
    if (!url) throw new Refusal(`DATABASE_URL is missing.\n\n${HELP}`);
    say(`epoch ${await declareRestored(url)} began; nodes converge within a heartbeat`);
  } else {
    throw new Refusal(HELP);
  }
} catch (error) {
  report(error);
}

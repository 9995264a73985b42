// `npm run reseal`: the second step of changing SVC_MASTER_KEY.
import knex from 'knex';
import { EnvError, parseEnv } from '../runtime/env.ts';
import { reseal } from '../runtime/reseal.ts';
import { createSealer } from '../runtime/sealer.ts';
import { Refusal, report, say } from './lib/progress.ts';

const HELP = `Usage: DATABASE_URL=… SVC_MASTER_KEY=<new> SVC_MASTER_KEY_PREVIOUS=<old> SVC_PUBLIC_URL=… npm run reseal

Seals every stored secret under SVC_MASTER_KEY. To change the key without an interruption:
  1. Restart every console process with the new key in SVC_MASTER_KEY and the old one in SVC_MASTER_KEY_PREVIOUS.
  2. Run this command with the same variables.
  3. Restart the processes without SVC_MASTER_KEY_PREVIOUS. Destroy the old key when no backup needs it.
Interrupting the command and running it again is safe.`;

try {
  if (process.argv.includes('--help')) {
    say(HELP);
  } else {
    const env = readEnvironment();
    if (env.previousMasterKey === null) throw new Refusal(`SVC_MASTER_KEY_PREVIOUS is missing.\n\n${HELP}`);
    const sql = knex({ client: 'pg', connection: env.databaseDirectUrl, pool: { min: 0, max: 1 } });
    try {
      const count = await reseal(sql, createSealer(env.masterKey, env.previousMasterKey));
      say(`${count} secrets were resealed; all secrets are now sealed under the new key`);
    } finally {
      await sql.destroy();
    }
  }
} catch (error) {
  report(error);
}

function readEnvironment() {
  try {
    return parseEnv(process.env);
  } catch (error) {
    if (error instanceof EnvError) throw new Refusal(error.message);
    throw error;
  }
}

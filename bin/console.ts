// One console process: `node bin/console.ts` with the variables of the README. Used by the launchers and by the image.
import { startConsole } from '../services/start-console.ts';

let running: { stop(): Promise<void> } | undefined;
let stopping = false;

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await running?.stop();
  process.exit(0);
}

process.on('SIGTERM', () => void stop());
process.on('SIGINT', () => void stop());

try {
  running = await startConsole(process.env);
} catch (error) {
  // A refusal (a missing variable, a database that stays away) is a sentence for the operator; a bug shows its stack.
  const refusal = error instanceof Error && error.name === 'EnvError';
  process.stderr.write(`${refusal ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}

// A process that sends the messages of alerts while it is the leader, as a console does, and tells its parent when it leads.
import pino from 'pino';
import { createRuntime } from '../../runtime/create-runtime.ts';
import { parseEnv } from '../../runtime/env.ts';
import { Leader } from '../../runtime/leader.ts';
import { feature } from '../../services/alerts/feature.ts';

const { runtime } = createRuntime(parseEnv(process.env), pino({ level: 'silent' }), new AbortController().signal);
const deliver = feature.jobs.find(({ name }) => name === 'deliver-alerts')!;
const leader = new Leader(runtime, [
  {
    name: deliver.name,
    everyMs: deliver.everyMs,
    run: async (of, signal) => {
      process.send?.('leads');
      await deliver.run(of, signal);
    },
  },
]);
await leader.start();

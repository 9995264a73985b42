// `eval "$(npm run -s demo:env)"`: the running demo's addresses and keys as shell variables.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { DemoFacts } from './lib/demo-state.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const HELP = `Usage: eval "$(npm run -s demo:env [-- --data DIR])"

Prints shell exports of the running demo: CONSOLE, KEY, EDGE, EDGE_HTTPS, CA_FILE, SITE_HOST, SITE_ID, CLUSTER_ID, NODE_ID,
NODE_API, ORIGIN, CLIENT_IP_HEADER, OPERATOR_EMAIL, OPERATOR_PASSWORD.`;

function readFacts(folder: string): DemoFacts {
  try {
    return JSON.parse(readFileSync(resolve(folder, 'demo.json'), 'utf8')) as DemoFacts;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Refusal(`no demo is ready in ${folder}. Start one with: npm run demo`);
  }
}

const quote = (value: string) => `'${value.replaceAll("'", `'\\''`)}'`;

try {
  const { values } = parseArgs({
    options: { data: { type: 'string', default: 'data/demo' }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) {
    say(HELP);
  } else {
    const facts = readFacts(resolve(root, values.data));
    const variables: Record<string, string> = {
      CONSOLE: facts.consoleUrl,
      KEY: facts.accessKey,
      EDGE: facts.edge.http,
      EDGE_HTTPS: facts.edge.https,
      CA_FILE: facts.caFile,
      SITE_HOST: facts.site.host,
      SITE_ID: facts.site.id,
      CLUSTER_ID: facts.clusterId,
      NODE_ID: facts.nodeId,
      NODE_API: facts.nodeApiUrl,
      ORIGIN: facts.origin,
      CLIENT_IP_HEADER: facts.clientIpHeader,
      OPERATOR_EMAIL: facts.operator.email,
      OPERATOR_PASSWORD: facts.operator.password,
    };
    for (const [name, value] of Object.entries(variables)) console.log(`export ${name}=${quote(value)}`);
  }
} catch (error) {
  report(error);
}

// `eval "$(npm run -s demo:env)"`: the running demo's addresses and keys as shell variables.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readDemoFacts } from './lib/demo-state.ts';
import { report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const HELP = `Usage: eval "$(npm run -s demo:env [-- --data DIR])"

Prints shell exports of the running demo: CONSOLE, KEY, EDGE, EDGE_HTTPS, CA_FILE, SITE_HOST, SITE_ID, CLUSTER_ID, NODE_ID,
NODE_API, ORIGIN, CLIENT_IP_HEADER, OPERATOR_EMAIL, OPERATOR_PASSWORD.`;

const quote = (value: string) => `'${value.replaceAll("'", `'\\''`)}'`;

try {
  const { values } = parseArgs({
    options: { data: { type: 'string', default: 'data/demo' }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) {
    say(HELP);
  } else {
    const facts = readDemoFacts(resolve(root, values.data));
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

// What the demo prints when it is ready.
import { relative } from 'node:path';
import type { Operator } from './console-client.ts';
import type { DemoFacts } from './demo-state.ts';
import { root } from './root.ts';

/** What is printed while the edge is still being built: the console can be looked at. */
export function waitingText(consoleUrl: string, { email, password }: Operator): string {
  return `
The console is running. The edge is being built, which takes some minutes the first time.
The start page shows when the node joins.

  Console   ${consoleUrl}   (sign in as ${email}, password ${password})
`;
}

/** What is printed when everything runs. */
export function demoText(facts: DemoFacts, folder: string, options: { kernel: boolean; acme: boolean }): string {
  const { consoleUrl, operator, accessKey, edge, site, clientIpHeader, origin, caFile } = facts;
  const [port, httpsPort] = [edge.http, edge.https].map((address) => address.split(':').at(-1));
  const data = relative(root, folder);
  const other = data === 'data/demo' ? '' : ` -- --data ${data.startsWith('..') ? folder : data}`;
  return `
The demo runs.

  Console   ${consoleUrl}   (sign in as ${operator.email}, password ${operator.password})
  API       ${consoleUrl}/api/v1   (access key ${accessKey})
  Site      http://${site.host}:${port}   (served by the edge, from the origin ${origin})
  HTTPS     https://${site.host}:${httpsPort}   (HTTP/2 and HTTP/3, with a certificate of the authority in the next line)
  CA file   ${caFile}
  Data      ${folder}

Nobody trusts the authority yet. Tell curl with --cacert, as below, or ${
    options.acme
      ? `the browser of a test. It vouches for any name and is another
at each start: do not add it to the authorities of a browser that you use.`
      : `add the file to the authorities of a browser. It can
vouch for names below localhost alone.`
  }

Two settings let one machine play many visitors: the cluster takes the client address from the header ${clientIpHeader}
(trusted from 127.0.0.0/8 and ::1), and loopback is on the origin allow list. The edge runs with --proxy-peers for the same
addresses: in the mode proxy_protocol they alone may name a client.
${options.kernel ? 'Banned addresses are dropped in the kernel too.' : 'Bans work at HTTP level; with root and nft, --kernel adds the kernel.'}

In another terminal:

  eval "$(npm run -s demo:env${other})"
  curl -i http://$EDGE/ -H "Host: $SITE_HOST" -H "$CLIENT_IP_HEADER: 203.0.113.7"       # 200
  curl -X POST $CONSOLE/api/v1/bans -H "x-api-key: $KEY" -H 'content-type: application/json' \\
    -d '{"scope":"platform","cidr":"203.0.113.7","reason":"abuse","durationSeconds":600}'
  curl -i http://$EDGE/ -H "Host: $SITE_HOST" -H "$CLIENT_IP_HEADER: 203.0.113.7"       # 403, X-Svc-Error: ip-banned
  curl -i http://$EDGE/ -H "Host: $SITE_HOST" -H "$CLIENT_IP_HEADER: 203.0.113.8"       # 200
  curl -i --cacert "$CA_FILE" --connect-to "::$EDGE_HTTPS" "https://$SITE_HOST/"        # HTTP/2 200

A flood, and what the edge does about it (more in docs/demo.md):

  curl -X PATCH $CONSOLE/api/v1/sites/$SITE_ID/protection -H "x-api-key: $KEY" -H 'content-type: application/json' \\
    -d '{"cc":{"enabled":true,"followTemplate":false,"windowSeconds":5,"siteQps":300,"ipQps":50,"escalateAfterSeconds":5,"cooldownSeconds":10}}'
  npm run bench -- attack --shape many-addresses --rate 1000          # --help names the other shapes
  curl $CONSOLE/api/v1/sites/$SITE_ID/security -H "x-api-key: $KEY"   # the level rises while it runs, and falls after it

Ctrl-C stops everything; the next start goes on where this one was.
`;
}

// A console with one port more: it answers the action sites.get without anything the gateway does before an action.
// Prints where it listens as a line of JSON.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { migrate } from '../../migrations/run.ts';
import { systemCall } from '../../mixins/call.ts';
import { startConsole } from '../../services/start-console.ts';

await migrate(process.env.DATABASE_URL!);
const running = await startConsole(process.env);
const { changes: _changes, ...call } = systemCall('bare');

const bare = createServer((request, response) => {
  const id = request.url!.slice(1);
  running.broker.call('sites.get', { id }, { meta: { call } }).then(
    (site: unknown) => {
      const body = JSON.stringify(site);
      response.writeHead(200, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
      });
      response.end(body);
    },
    () => {
      response.writeHead(500);
      response.end();
    },
  );
});
bare.listen(0, '127.0.0.1', () => {
  const { port } = bare.address() as AddressInfo;
  console.log(JSON.stringify({ web: running.web!.port, bare: port, setupToken: running.setupToken }));
});
process.on('SIGTERM', () => {
  bare.close();
  bare.closeAllConnections();
  void running.stop().then(() => process.exit(0));
});

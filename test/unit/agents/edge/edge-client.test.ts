import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import test, { type ExecutionContext } from 'ava';
import { EdgeClient } from '../../../../agents/edge/caddy/edge-client.ts';
import { EdgeError } from '../../../../agents/edge/caddy/edge-error.ts';
import { type ApplyBansRequest, EdgeService } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { BanPositionSchema, BanSchema } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { temporaryFolder } from '../helpers/folder.ts';

async function serve(t: ExecutionContext, routes: (router: ConnectRouter) => void) {
  const path = join(temporaryFolder(t), 'edge.sock');
  let connections = 0;
  const server: Server = createServer(connectNodeAdapter({ routes }));
  server.on('connection', () => connections++);
  const listen = (): Promise<void> => new Promise((resolve) => server.listen(path, resolve));
  await listen();
  const client = new EdgeClient(path);
  t.teardown(() => {
    client.close();
    server.closeAllConnections();
    server.close();
  });
  return { client, server, listen, connections: () => connections };
}

test('calls and answers carry the messages over one connection that is kept', async (t) => {
  const seen: ApplyBansRequest[] = [];
  const { client, connections } = await serve(t, (router) =>
    router.service(EdgeService, {
      applyBans: (request) => {
        seen.push(request);
        return { state: { position: request.target!, entries: 1n, capacity: 10n } };
      },
    }),
  );
  for (let sequence = 1n; sequence <= 20n; sequence++) {
    const { state } = await client.applyBans({
      base: create(BanPositionSchema, { epoch: 1n, sequence: sequence - 1n }),
      target: create(BanPositionSchema, { epoch: 1n, sequence }),
      upserts: [create(BanSchema, { id: `b${sequence}`, cidr: '192.0.2.1/32' })],
    });
    t.is(state!.position!.sequence, sequence);
  }
  t.is(seen.length, 20);
  t.is(seen[4]!.upserts[0]!.id, 'b5');
  t.is(connections(), 1);
});

test('a refusal keeps its code and message', async (t) => {
  const { client } = await serve(t, (router) =>
    router.service(EdgeService, {
      applyBans: () => {
        throw new ConnectError('another base', Code.FailedPrecondition);
      },
    }),
  );
  const error = await t.throwsAsync(client.applyBans({}), { instanceOf: EdgeError });
  t.is((error as EdgeError).code, 'failed_precondition');
  t.is(error.message, 'another base');
  const missing = await t.throwsAsync(client.getStatus(), { instanceOf: EdgeError });
  t.is((missing as EdgeError).code, 'unimplemented');
});

test('nobody there is "unavailable"', async (t) => {
  const client = new EdgeClient(join(temporaryFolder(t), 'none.sock'));
  const error = await t.throwsAsync(client.getStatus(), { instanceOf: EdgeError });
  t.is((error as EdgeError).code, 'unavailable');
});

test('a server that restarted between two calls is not noticed', async (t) => {
  const { client, server, listen } = await serve(t, (router) =>
    router.service(EdgeService, { getStatus: () => ({ instanceId: 'x' }) }),
  );
  t.is((await client.getStatus()).instanceId, 'x');
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await listen();
  t.is((await client.getStatus()).instanceId, 'x');
});

test('an answer that breaks off is "unavailable"', async (t) => {
  const path = join(temporaryFolder(t), 'edge.sock');
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('half');
    setImmediate(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => server.close());
  const client = new EdgeClient(path);
  t.teardown(() => client.close());
  const error = await t.throwsAsync(client.getStatus(), { instanceOf: EdgeError });
  t.is((error as EdgeError).code, 'unavailable');
});

test('something that is no answer of Connect keeps its status', async (t) => {
  const path = join(temporaryFolder(t), 'edge.sock');
  const server = createServer((_request, response) => response.writeHead(502).end('<html>'));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => server.close());
  const client = new EdgeClient(path);
  t.teardown(() => client.close());
  await t.throwsAsync(client.getStatus(), { message: /status 502/ });
});

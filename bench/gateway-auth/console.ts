// A console with one port more: it answers sites.get through the same gateway (alias, action, headers, answer) without
// the conventions that come before an action: credentials, rate limit, last use, idempotency. Prints where it listens as
// a line of JSON. Whoever started it may have it leave out parts of the gateway (switches.ts) by a message.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Redis } from 'ioredis';
import type { Context, Service } from 'moleculer';
import { PROCEDURES } from '../../contract/index.ts';
import { migrate } from '../../migrations/run.ts';
import { systemCall } from '../../runtime/call.ts';
import { NOBODY } from '../../services/api-gateway/credentials.ts';
import type { Exchange } from '../../services/api-gateway/exchange.ts';
import { startConsole } from '../../services/start-console.ts';
import { gatewaySwitches, type Part } from './switches.ts';

interface Alias {
  action: string;
  route: unknown;
}

/** The parts of the gateway's service that lead from an alias to an answer. */
interface GatewayService extends Service {
  aliases: Alias[];
  aliasHandler(request: object, response: object, alias: Alias): Promise<unknown>;
}

await migrate(process.env.DATABASE_URL!);
const running = await startConsole(process.env);
const { broker } = running;
const gateway = broker.getLocalService('api-gateway') as unknown as GatewayService;
const procedure = PROCEDURES.get('sites.get')!;
const alias = gateway.aliases.find(({ action, route }) => action === procedure.name && isApi(route))!;
const { changes: _changes, ...call } = systemCall('bare');
const contexts = broker as unknown as {
  ContextFactory: { create(owner: unknown, endpoint: null, params: object, options: object): Context };
};

function isApi(route: unknown): boolean {
  return (route as { path: string }).path.includes('api');
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const exchange: Exchange = {
    request,
    response,
    surface: 'api',
    requestId: randomUUID(),
    traceparent: '',
    arrivedAt: performance.now(),
    caller: NOBODY,
    procedure,
    idempotency: null,
    cookies: [],
  };
  const way = request as unknown as Record<string, unknown>;
  Object.assign(way, {
    $ctx: contexts.ContextFactory.create(broker, null, {}, { meta: { call } }),
    $route: alias.route,
    $alias: alias,
    $params: request.method === 'POST' ? JSON.parse(await text(request)) : { id: request.url!.slice(1) },
    $exchange: exchange,
  });
  await gateway.aliasHandler(request, response, alias);
  await way.$answered;
}

const bare = createServer({ keepAlive: true, noDelay: true }, (request, response) => {
  answer(request, response).catch(() => {
    response.writeHead(500);
    response.end();
  });
});
bare.listen(0, '127.0.0.1', () => {
  const { port } = bare.address() as AddressInfo;
  console.log(JSON.stringify({ web: running.web!.port, bare: port, setupToken: running.setupToken }));
});
let switches: ((out: readonly Part[]) => void) | null = null;
process.on('message', (out: Part[]) => {
  switches ??= gatewaySwitches(broker, new Redis(process.env.REDIS_URL!));
  switches(out);
  process.send!('switched');
});
process.on('SIGTERM', () => {
  bare.close();
  bare.closeAllConnections();
  void running.stop().then(() => process.exit(0));
});

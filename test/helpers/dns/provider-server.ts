// What servers written from a provider's documentation share: a zone in memory behind HTTP, with the proxy that spoils
// exchanges in front of it.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Access } from '../../../services/dns/adapters/adapter.ts';
import type { ServerUnderTest } from './adapter-suite.ts';
import { faultyHttp, type LimitedResponse, type SeenRequest } from './faulty-proxy.ts';
import { MemoryZones } from './memory-zones.ts';
import { BIG_ZONE, ZONE } from './primary-servers.ts';

export interface ProviderResponse {
  status: number;
  body: unknown;
}

export interface ProviderServerOptions {
  /** Answers one request over the zones. */
  answer(request: SeenRequest, zones: MemoryZones): ProviderResponse;
  isWrite(request: SeenRequest): boolean;
  limited?: LimitedResponse;
  credentials: Access['credentials'];
  wrong: Access['credentials'];
  /** Path of the API below the server. */
  base?: string;
  /** Line of the provider for one of ours, as hand edits have it. */
  lineOf?: (line: string) => string;
}

export async function startProviderServer(options: ProviderServerOptions): Promise<ServerUnderTest> {
  const { lineOf = () => '' } = options;
  const zones = new MemoryZones([ZONE, BIG_ZONE]);
  for (const zone of [ZONE, BIG_ZONE]) {
    const ns = { name: zone, type: 'NS', line: lineOf('default'), ttl: 86_400 };
    zones.create(zone, { ...ns, value: 'ns1.provider.example.' });
    zones.create(zone, { ...ns, value: 'ns2.provider.example.' });
  }
  let failure: unknown = null;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = 'GET', url: path = '/', headers } = request;
    try {
      const body = Buffer.concat(chunks).toString();
      const answer = options.answer({ method, path, headers, body }, zones);
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(answer.status === 204 ? undefined : JSON.stringify(answer.body));
    } catch (error) {
      failure = error;
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = await faultyHttp((server.address() as AddressInfo).port, options.isWrite, options.limited);
  const common = { endpoint: `http://127.0.0.1:${proxy.port}${options.base ?? ''}`, allow: ['127.0.0.0/8'] };
  return {
    zone: ZONE,
    bigZone: BIG_ZONE,
    access: { ...common, credentials: options.credentials },
    wrong: { ...common, credentials: options.wrong },
    proxy,
    async add(zone, records) {
      for (const record of records) zones.create(zone, { ...record, line: lineOf(record.line) });
    },
    async remove(zone, name, type) {
      zones.deleteSet(zone, name, type);
    },
    resolve: null,
    async stop() {
      await proxy.close();
      server.closeAllConnections();
      server.close();
      if (failure) throw failure;
    },
  };
}

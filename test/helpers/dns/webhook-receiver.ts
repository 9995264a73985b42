// A receiver of webhooks, written from docs/dns.md.
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServerUnderTest } from './adapter-suite.ts';
import { faultyHttp } from './faulty-proxy.ts';
import { MemoryZones, Refused, shownName } from './memory-zones.ts';
import { BIG_ZONE, ZONE } from './primary-servers.ts';

const SECRET = 'what requests are signed with';

interface Sent {
  name: string;
  type: string;
  data: string;
  ttl: number;
}

export async function startReceiver(): Promise<ServerUnderTest> {
  const store = new MemoryZones([ZONE, BIG_ZONE]);
  for (const zone of [ZONE, BIG_ZONE]) {
    store.create(zone, { name: zone, type: 'NS', line: '', ttl: 60, value: `ns1.${zone}.` });
  }
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const signed = createHmac('sha256', SECRET).update(`${request.headers['x-svc-timestamp']}.${body}`).digest('hex');
    const right = request.headers['x-svc-signature'] === `v1=${signed}`;
    const [status, answer] = right ? answerTo(JSON.parse(body)) : [401, {}];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  const answerTo = ({ action, zone, ...given }: Record<string, unknown>): [number, unknown] => {
    if (action === 'zones') return [200, { zones: [...store.zones.keys()] }];
    if (typeof zone !== 'string' || !store.zones.has(zone)) return [404, {}];
    if (action === 'list') {
      const records = store.records(zone).map(({ name, type, ttl, value }) => {
        return { name: name === zone ? '@' : shownName(name).slice(0, -zone.length - 1), type, ttl, data: value };
      });
      return [200, { records }];
    }
    if (action === 'present' || action === 'cleanup') {
      const { name, type, value, ttl } = given as { name: string; type: string; value: string; ttl: number };
      const records = [{ name: name.slice(0, -zone.length - 1), type, data: value, ttl }];
      return change(zone, action === 'present' ? 'append' : 'delete', records);
    }
    return change(zone, String(action), given.records as Sent[]);
  };
  /** All of the records or none. */
  const change = (zone: string, action: string, records: readonly Sent[]): [number, unknown] => {
    const before = new Map(store.zones.get(zone));
    try {
      const named = records.map((one) => ({ ...one, name: one.name === '@' ? zone : `${one.name}.${zone}` }));
      if (action === 'set') for (const { name, type } of named) store.deleteSet(zone, name, type);
      for (const { name, type, data, ttl } of named) {
        const there = store.records(zone).find((one) => one.name === name && one.type === type && one.value === data);
        if (action === 'delete') {
          if (there) store.delete(zone, there.id);
        } else if (!there) store.create(zone, { name, type, line: '', ttl, value: data });
      }
      return [204, {}];
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      store.zones.set(zone, before);
      return [error.reason === 'conflict' ? 409 : 400, {}];
    }
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const isWrite = ({ body }: { body: string }) => !['list', 'zones'].includes(JSON.parse(body).action);
  const proxy = await faultyHttp((server.address() as AddressInfo).port, isWrite);
  const credentials = { url: `http://127.0.0.1:${proxy.port}/records`, secret: SECRET };
  return {
    zone: ZONE,
    bigZone: BIG_ZONE,
    access: { credentials, allow: ['127.0.0.0/8'] },
    wrong: { credentials: { ...credentials, secret: 'this is not the secret' }, allow: ['127.0.0.0/8'] },
    proxy,
    async add(zone, records) {
      for (const record of records) store.create(zone, { ...record, line: '' });
    },
    async remove(zone, name, type) {
      store.deleteSet(zone, name, type);
    },
    resolve: null,
    async stop() {
      await proxy.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

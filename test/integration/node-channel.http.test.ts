import { connect as connectHttp2 } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { hostname } from 'node:os';
import { connect as connectTls, type PeerCertificate } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import type { Identity } from '../../bench/fleet/connection.ts';
import {
  HeartbeatRequestSchema,
  HeartbeatResponseSchema,
  WatchEventSchema,
} from '../../proto/gen/svc/node/v1/node_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { enrollOne } from '../helpers/fleet.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let identity: Identity;

test.before('start', async () => {
  running = await startTestConsole({ env: { SVC_NODE_API_HOSTNAMES: 'extra.example,192.0.2.9' } });
  api = new Api(running);
  identity = await enrollOne(running, await api.cluster('http'));
});
test.after.always('stop', () => running?.stop());

const SERVICE = '/svc.node.v1.NodeService';
const HEARTBEAT = Buffer.from(toBinary(HeartbeatRequestSchema, create(HeartbeatRequestSchema, { message: 'hello' })));

// Passed on to the TLS layer; its types leave it out.
const HTTP1: object = { ALPNProtocols: ['http/1.1'] };

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  body: Buffer;
}

/** Over HTTP/2, as the node unless told otherwise. */
function h2(
  path: string,
  headers: Record<string, string> = {},
  body: Buffer = HEARTBEAT,
  method = 'POST',
  asNode = true,
): Promise<Answer> {
  const session = connectHttp2(running.nodeApiUrl, {
    ca: identity.authorityPem,
    ...(asNode ? { key: identity.keyPem, cert: identity.certificatePem } : {}),
  });
  return new Promise<Answer>((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request({
      ':method': method,
      ':path': path,
      'content-type': 'application/proto',
      ...headers,
    });
    const chunks: Buffer[] = [];
    let answered: Record<string, unknown> = {};
    stream.on('response', (received) => {
      answered = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () =>
      resolve({ status: Number(answered[':status']), headers: answered, body: Buffer.concat(chunks) }),
    );
    stream.on('error', reject);
    if (method === 'GET') stream.end();
    else stream.end(body);
  }).finally(() => session.destroy());
}

/** Over HTTP/1.1. */
function h1(path: string, headers: Record<string, string> = {}, body = HEARTBEAT): Promise<Answer> {
  const { port } = new URL(running.nodeApiUrl);
  return new Promise<Answer>((resolve, reject) => {
    const request = httpsRequest(
      {
        host: 'localhost',
        port,
        path,
        method: 'POST',
        ca: identity.authorityPem,
        key: identity.keyPem,
        cert: identity.certificatePem,
        ...HTTP1,
        agent: false,
        headers: { 'content-type': 'application/proto', ...headers },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
        );
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

test('every path but those of the service is 404, with and without a certificate', async (t) => {
  for (const path of [
    '/',
    '/healthz',
    SERVICE,
    `${SERVICE}/`,
    `${SERVICE}/Nothing`,
    `${SERVICE}/heartbeat`,
    `${SERVICE}/Heartbeat?x=1`,
    '/svc.node.v1.ProbeService/GetProbeTargets',
    '/api/v1/nodes',
  ]) {
    for (const asNode of [true, false]) {
      const answer = await h2(path, {}, HEARTBEAT, 'POST', asNode);
      t.is(answer.status, 404, path);
      t.deepEqual(JSON.parse(answer.body.toString()), { error: 'not_found' });
    }
  }
});

test('only POST is a call', async (t) => {
  const answer = await h2(`${SERVICE}/Heartbeat`, {}, HEARTBEAT, 'GET');
  t.is(answer.status, 405);
  t.is(answer.headers.allow, 'POST');
});

test('a call over HTTP/2 and over HTTP/1.1 is answered alike', async (t) => {
  for (const call of [h2, h1]) {
    const answer = await call(`${SERVICE}/Heartbeat`);
    t.is(answer.status, 200);
    t.is(answer.headers['content-type'], 'application/proto');
    t.is(fromBinary(HeartbeatResponseSchema, answer.body).intervalSeconds, 15);
  }
});

test('JSON and compressed calls are served as the protocol has them', async (t) => {
  const json = await h2(`${SERVICE}/Heartbeat`, { 'content-type': 'application/json' }, Buffer.from('{"message":"x"}'));
  t.is(json.status, 200);
  t.is(JSON.parse(json.body.toString()).intervalSeconds, 15);
  const packed = await h2(`${SERVICE}/Heartbeat`, { 'content-encoding': 'gzip' }, gzipSync(HEARTBEAT));
  t.is(packed.status, 200);
  t.is(fromBinary(HeartbeatResponseSchema, packed.body).intervalSeconds, 15);
});

test('what is no message is refused and nothing is written', async (t) => {
  const garbage = Buffer.from('this is no message at all');
  for (const call of [h2, h1]) {
    const answer = await call(`${SERVICE}/Heartbeat`, {}, garbage);
    t.is(answer.status, 400);
    t.is(JSON.parse(answer.body.toString()).code, 'invalid_argument');
  }
  t.is((await h2(`${SERVICE}/Heartbeat`, { 'content-type': 'text/plain' })).status, 415);
  t.is((await h2(`${SERVICE}/Heartbeat`, { 'content-type': 'application/grpc' })).status, 415);
  t.is((await h2(`${SERVICE}/Watch`, { 'content-type': 'application/proto' })).status, 415);
});

test('a Watch request is one uncompressed message of a few bytes', async (t) => {
  const type = { 'content-type': 'application/connect+proto' };
  const envelope = (flags: number, message: Buffer) => {
    const header = Buffer.alloc(5);
    header.writeUInt8(flags, 0);
    header.writeUInt32BE(message.length, 1);
    return Buffer.concat([header, message]);
  };
  const bad: [Buffer, RegExp][] = [
    [Buffer.alloc(0), /no message/],
    [Buffer.alloc(3), /no message/],
    [envelope(1, Buffer.alloc(2)), /compressed/],
    [Buffer.concat([envelope(0, Buffer.alloc(0)), Buffer.alloc(1)]), /exactly one message/],
    [envelope(0, Buffer.from('garbage')), /cannot be decoded/],
    [envelope(0, Buffer.alloc(5000)), /too large/],
  ];
  for (const [body, message] of bad) {
    const answer = await h2(`${SERVICE}/Watch`, type, body);
    t.is(answer.body[0], 2);
    t.regex(answer.body.subarray(5).toString(), message);
  }
});

test('a stream works over HTTP/1.1', async (t) => {
  const { port } = new URL(running.nodeApiUrl);
  const first = await new Promise<Buffer>((resolve, reject) => {
    const request = httpsRequest(
      {
        host: 'localhost',
        port,
        path: `${SERVICE}/Watch`,
        method: 'POST',
        ca: identity.authorityPem,
        key: identity.keyPem,
        cert: identity.certificatePem,
        ...HTTP1,
        agent: false,
        headers: { 'content-type': 'application/connect+proto' },
      },
      (response) =>
        response.once('data', (chunk: Buffer) => {
          resolve(chunk);
          request.destroy();
        }),
    );
    request.on('error', reject);
    request.end(Buffer.alloc(5));
  });
  const { event } = fromBinary(WatchEventSchema, first.subarray(5, 5 + first.readUInt32BE(1)));
  t.is(event.case, 'target');
});

test('a request whose head trickles in over HTTP/1.1 is ended', async (t) => {
  const { port } = new URL(running.nodeApiUrl);
  // A stranger's connection ends without a response at about the same time.
  const credentials = { key: identity.keyPem, cert: identity.certificatePem };
  const socket = connectTls({
    port: Number(port),
    ca: identity.authorityPem,
    servername: 'localhost',
    ...credentials,
    ...HTTP1,
  });
  const ended = new Promise<string>((resolve) => {
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });
  socket.write(`POST ${SERVICE}/Heartbeat HTTP/1.1\r\nhost: localhost\r\nx-slow: `);
  const trickle = setInterval(() => socket.write('x'), 200);
  t.regex(await ended, /^HTTP\/1\.1 408 /);
  clearInterval(trickle);
});

test('a connection without a certificate ends after its few seconds, that of a node stays', async (t) => {
  const { port } = new URL(running.nodeApiUrl);
  const connect = (credentials: object) =>
    connectTls({
      host: 'localhost',
      port: Number(port),
      ca: identity.authorityPem,
      ALPNProtocols: ['h2'],
      ...credentials,
    });
  const node = connect({ key: identity.keyPem, cert: identity.certificatePem });
  const stranger = connect({});
  t.teardown(() => {
    node.destroy();
    stranger.destroy();
  });
  for (const socket of [node, stranger]) socket.on('error', () => undefined).resume();
  await eventually(() => stranger.closed, { what: 'the end of the stranger' });
  t.false(node.closed);
});

test('a body above 16 MiB is refused', async (t) => {
  const answer = await h2(`${SERVICE}/Heartbeat`, {}, Buffer.alloc(16 * 1024 * 1024 + 1)).catch(
    (error: Error) => error,
  );
  if (answer instanceof Error) t.regex(answer.message, /closed|reset|NGHTTP2/i);
  else t.is(JSON.parse(answer.body.toString()).code, 'resource_exhausted');
  t.is((await h2(`${SERVICE}/Heartbeat`)).status, 200);
});

function presented(): Promise<{ names: string; chain: PeerCertificate[]; protocol: string | null }> {
  const { port } = new URL(running.nodeApiUrl);
  return new Promise((resolve, reject) => {
    const socket = connectTls(
      { host: 'localhost', port: Number(port), servername: 'localhost', rejectUnauthorized: false },
      () => {
        const leaf = socket.getPeerCertificate(true);
        resolve({
          names: leaf.subjectaltname ?? '',
          chain: [leaf, leaf.issuerCertificate],
          protocol: socket.getProtocol(),
        });
        socket.destroy();
      },
    );
    socket.on('error', reject);
  });
}

test('the channel presents the pinned authority and every name it goes by; a saved address is named at once', async (t) => {
  const before = await presented();
  const { caSha256 } = await api.ok('POST', '/enrollment-tokens', { clusterId: identity.clusterId });
  t.is(before.chain[1]!.fingerprint256.replaceAll(':', '').toLowerCase(), caSha256);
  for (const name of [
    'DNS:localhost',
    'IP Address:127.0.0.1',
    'IP Address:0:0:0:0:0:0:0:1',
    'DNS:extra.example',
    'IP Address:192.0.2.9',
    `DNS:${hostname().toLowerCase()}`,
  ]) {
    t.true(before.names.includes(name), `${name} in ${before.names}`);
  }
  await api.ok('PUT', '/settings/node-channel', { url: 'https://saved.example:8443' });
  await eventually(async () => (await presented()).names.includes('DNS:saved.example'));
  await api.ok('PUT', '/settings/node-channel', { url: '' });
  // Nodes that know the name keep finding it.
  await api.ok('PUT', '/settings/node-channel', { url: 'https://second.example' });
  const after = await eventually(async () => {
    const { names } = await presented();
    return names.includes('DNS:second.example') && names;
  });
  t.true(after.includes('DNS:saved.example'));
  await api.ok('PUT', '/settings/node-channel', { url: '' });
});

test('TLS below 1.2 is refused', async (t) => {
  const { port } = new URL(running.nodeApiUrl);
  const error = await new Promise<Error | null>((resolve) => {
    const socket = connectTls(
      {
        host: 'localhost',
        port: Number(port),
        rejectUnauthorized: false,
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'DEFAULT@SECLEVEL=0',
      },
      () => resolve(null),
    );
    socket.on('error', resolve);
  });
  t.not(error, null);
});

test.serial('a stranger who asks again and again on one connection is logged once', async (t) => {
  const { log } = running.running.runtime;
  const { info } = log;
  const refused: unknown[] = [];
  log.info = ((fields: { reason?: string }, text?: string) => {
    if (text === 'node refused') refused.push(fields.reason);
  }) as typeof info;
  const session = connectHttp2(running.nodeApiUrl, { ca: identity.authorityPem });
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      const stream = session.request({ ':method': 'POST', ':path': `${SERVICE}/Heartbeat` });
      stream.on('response', (headers) => resolve(Number(headers[':status'])));
      stream.on('error', reject);
      stream.resume().end();
    });
  try {
    for (let count = 0; count < 5; count++) t.is(await ask(), 401);
  } finally {
    session.close();
    log.info = info;
  }
  t.deepEqual(refused, ['CERT_MISSING']);
});

// Our data plane with sites under attack and a key that the benchmark knows.
import http from 'node:http';
import path from 'node:path';
import { create } from '@bufbuild/protobuf';
import { EdgeClient } from '../../agents/edge/caddy/edge-client.ts';
import { ChallengeKeysSchema } from '../../proto/gen/svc/node/v1/security_pb.js';
import { edgeCommand, presentEdge } from './edge.ts';
import { type EdgeState, siteHost, writeEdgeState } from './edge-state.ts';
import { answers, freePort, type Server, startServer } from './servers.ts';

export const SECRET = Buffer.alloc(32, 7);

export interface ChallengedEdge {
  server: Server;
  client: EdgeClient;
}

/** Starts the edge on the cores; its first site must be one that is under attack. */
export async function startChallengedEdge(
  state: EdgeState,
  cpus: string,
  build = presentEdge,
): Promise<ChallengedEdge> {
  const port = await freePort();
  writeEdgeState(state);
  // Without keys a challenged site answers 503.
  const ready = () => answers(port, siteHost(0), 503);
  const server = await startServer('edge', cpus, edgeCommand(state.folder, port, build), port, ready);
  const client = new EdgeClient(path.join(state.folder, 'run', 'edge.sock'));
  const keys = create(ChallengeKeysSchema, { version: 1n, current: { id: 'k1', secret: SECRET } });
  await client.setChallengeKeys({ keys });
  return { server, client };
}

/** The pass that a site of level cookie302 gives to a client without a User-Agent, as a Cookie header. */
export async function passOf(port: number, host: string, headers: Record<string, string> = {}): Promise<string> {
  const cookies = await new Promise<string[]>((resolve, reject) => {
    const asked = http.request({ host: '127.0.0.1', port, headers: { ...headers, host }, agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.headers['set-cookie'] ?? []));
    });
    asked.on('error', reject);
    asked.end();
  });
  if (cookies.length === 0) throw new Error(`${host} gave no pass`);
  return cookies[0]!.split(';')[0]!;
}

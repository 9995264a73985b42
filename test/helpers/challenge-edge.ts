// A real data plane with a site for each level, all under attack, and the keys its challenges are signed with.
import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { EdgeClient } from '../../agents/edge/caddy/edge-client.ts';
import { edgeCommand } from '../../bench/lib/edge.ts';
import { siteHost, writeEdgeState } from '../../bench/lib/edge-state.ts';
import { answers, freePort, startServer } from '../../bench/lib/servers.ts';
import { ChallengeType } from '../../proto/gen/svc/config/v1/protection_pb.js';
import { ChallengeKeysSchema } from '../../proto/gen/svc/node/v1/security_pb.js';

export type Level = 'cookie302' | 'js' | 'pow' | 'captcha';
export const LEVELS: readonly Level[] = ['cookie302', 'js', 'pow', 'captcha'];

const SECRET = Buffer.alloc(32, 7);
const HARD_BITS = 24;

export interface ChallengeEdge {
  client: EdgeClient;
  /** Address of the site that asks for a level; `hard` is one whose proof of work nobody finishes soon. */
  url(level: Level | 'hard', path?: string): string;
  stop(): Promise<void>;
}

/** Starts it in front of an origin whose every page says "The site" and where it was asked. */
export async function startChallengeEdge(): Promise<ChallengeEdge> {
  const origin = createServer((request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><html lang="en"><title>Site</title><h1>The site</h1><p>${request.url}</p>`);
  });
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'challenge-'));
  const kinds = [ChallengeType.COOKIE302, ChallengeType.JS, ChallengeType.POW, ChallengeType.CAPTCHA];
  writeEdgeState({
    folder,
    sites: LEVELS.length + 1,
    origin: { address: '127.0.0.1', port: (origin.address() as AddressInfo).port },
    protection: [
      ...kinds.map((kind) => ({
        underAttack: true,
        underAttackChallenge: kind,
        powDifficulty: 12,
        powHighDifficulty: 14,
      })),
      {
        underAttack: true,
        underAttackChallenge: ChallengeType.POW,
        powDifficulty: HARD_BITS,
        powHighDifficulty: HARD_BITS,
      },
    ],
  });
  const port = await freePort();
  const server = await startServer('edge', '0-63', edgeCommand(folder, port), port, () =>
    answers(port, siteHost(0), 503),
  );
  const client = new EdgeClient(join(folder, 'run', 'edge.sock'));
  await client.setChallengeKeys({
    keys: create(ChallengeKeysSchema, { version: 1n, current: { id: 'k1', secret: SECRET } }),
  });
  return {
    client,
    url: (level, path = '/') => {
      const index = level === 'hard' ? LEVELS.length : LEVELS.indexOf(level);
      return `http://${siteHost(index)}:${port}${path}`;
    },
    stop: async () => {
      client.close();
      await server.stop();
      await new Promise((resolve) => origin.close(resolve));
      origin.closeAllConnections();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A captcha token with another answer, signed like one of the edge: a test cannot read the image. */
export function withAnswer(token: string, answer: string): string {
  const [kid, payload] = token.split('.') as [string, string];
  const fields = Buffer.from(payload, 'base64url').toString().split('|');
  const nonce = fields[7]!;
  fields[9] = createHmac('sha256', SECRET).update(`a|${nonce}|${answer}`).digest('hex').slice(0, 32);
  const signed = `${kid}.${Buffer.from(fields.join('|')).toString('base64url')}`;
  return `${signed}.${createHmac('sha256', SECRET).update(`c1.${signed}`).digest('base64url')}`;
}

// Our data plane alone: Caddy with our modules and a state folder, without agent and console.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type CaddyConfigOptions, renderCaddyConfig } from '../../agents/edge/caddy/caddy-config.ts';
import { buildCaddy } from '../../bin/lib/caddy.ts';

/** A binary of the edge and the static configuration that this binary understands. */
export interface EdgeBuild {
  binary: string;
  config: typeof renderCaddyConfig;
}

/** The edge of the present sources. */
export const presentEdge: EdgeBuild = { binary: await buildCaddy(), config: renderCaddyConfig };

/** Where the edge of a state folder takes calls of its agent. */
export const edgeSocket = (folder: string): string => path.join(folder, 'run', 'edge.sock');

/** The command that serves the state in `folder` on a loopback port, and on another one with TLS. */
export function edgeCommand(
  folder: string,
  port: number,
  build = presentEdge,
  httpsPort?: number,
  more: Partial<CaddyConfigOptions> = {},
): string[] {
  const run = path.join(folder, 'run');
  mkdirSync(run, { recursive: true, mode: 0o700 });
  const config = path.join(run, 'caddy.json');
  writeFileSync(
    config,
    JSON.stringify(
      build.config({
        stateDir: folder,
        socketPath: edgeSocket(folder),
        httpListen: [`127.0.0.1:${port}`],
        httpsListen: httpsPort === undefined ? [] : [`127.0.0.1:${httpsPort}`],
        banCapacity: 100_000,
        banMaxMib: 32,
        proxyPeers: [],
        ...more,
      }),
    ),
  );
  return [build.binary, 'run', '--config', config];
}

// Our data plane alone: Caddy with our modules and a state folder, without agent and console.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { renderCaddyConfig } from '../../agents/edge/caddy/caddy-config.ts';
import { buildCaddy } from '../../bin/lib/caddy.ts';

const binary = await buildCaddy();

/** The command that serves the state in `folder` on a loopback port. */
export function edgeCommand(folder: string, port: number): string[] {
  const run = path.join(folder, 'run');
  mkdirSync(run, { recursive: true, mode: 0o700 });
  const config = path.join(run, 'caddy.json');
  writeFileSync(
    config,
    JSON.stringify(
      renderCaddyConfig({
        stateDir: folder,
        socketPath: path.join(run, 'edge.sock'),
        httpListen: [`127.0.0.1:${port}`],
        banCapacity: 100_000,
        banMaxMib: 32,
        proxyPeers: [],
      }),
    ),
  );
  return [binary, 'run', '--config', config];
}

// Caddy of the same version as the edge's, with its own handlers only: what our data plane is measured beside.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { buildGo, freePort, type Server, startServer } from './servers.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Files with a chain and its key in PEM. */
export interface CertificateFiles {
  certificate: string;
  key: string;
}

/**
 * Starts Caddy on the cores with one handler for every request; `ready` is asked until it is true. With certificates it
 * speaks TLS.
 */
export async function startPlainCaddy(
  folder: string,
  cpus: string,
  handler: Record<string, unknown>,
  ready: (port: number) => Promise<boolean>,
  certificates: readonly CertificateFiles[] = [],
): Promise<Server> {
  mkdirSync(path.join(root, '.cache'), { recursive: true });
  const caddy = buildGo(path.join(root, 'bench/plain-caddy'), path.join(root, '.cache/plain-caddy'));
  const port = await freePort();
  const file = path.join(folder, 'plain-caddy.json');
  writeFileSync(
    file,
    JSON.stringify({
      admin: { disabled: true },
      logging: { logs: { default: { level: 'ERROR' } } },
      apps: {
        http: {
          servers: {
            plain: {
              listen: [`127.0.0.1:${port}`],
              automatic_https: { disable: true },
              protocols: ['h1', 'h2'],
              ...(certificates.length > 0 ? { tls_connection_policies: [{}] } : {}),
              routes: [{ handle: [handler] }],
            },
          },
        },
        ...(certificates.length > 0 ? { tls: { certificates: { load_files: certificates } } } : {}),
      },
    }),
  );
  return await startServer('caddy', cpus, [caddy, 'run', '--config', file], port, () => ready(port));
}

// Caches of a benchmark beside each other: our edge, nginx with proxy_cache, and Varnish, before one origin.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { CacheRuleSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import { ExpressionOp, ExpressionSchema } from '../../proto/gen/svc/config/v1/expression_pb.js';
import { httpsWith, writePack, writePem } from './certificate-files.ts';
import { edgeCommand } from './edge.ts';
import { siteHost, writeEdgeState } from './edge-state.ts';
import { answers, answersTls, freePort, nginxCommand, type Server, startServer } from './servers.ts';
import type { TlsLoad } from './tls-load.ts';

/** Sites of the edge. `/` of the last one is the large file, over TLS. */
export const HOSTS = { caching: siteHost(0), plain: siteHost(1), bypassing: siteHost(2), large: siteHost(3) } as const;

export interface Cache {
  server: Server;
  /** 0 without TLS. */
  tlsPort: number;
}

const FILES = { '1k': 1 << 10, '100k': 100 << 10, '10m': 10 << 20 } as const;
const always = toBinary(
  ExpressionSchema,
  create(ExpressionSchema, {
    version: 1,
    root: { op: ExpressionOp.LITERAL, values: [{ value: { case: 'truth', value: true } }] },
  }),
);
const rule = (bypass: boolean) => ({
  rules: [create(CacheRuleSchema, { priority: 10, condition: always, bypass, edgeTtlSeconds: bypass ? 0 : 3600 })],
});

/** Starts the origin and the caches; the origin has `loadCpu`, each cache `cpu`. */
export async function startCaches(
  folder: string,
  { cpu, loadCpu, load, started }: { cpu: string; loadCpu: string; load: TlsLoad; started: Server[] },
): Promise<Map<string, Cache>> {
  const start = async (...options: Parameters<typeof startServer>) => {
    const server = await startServer(...options);
    started.push(server);
    return server;
  };
  const originPort = await freePort();
  await start('origin', loadCpu, originCommand(folder, originPort), originPort, () => answers(originPort, 'origin'));
  const [certificate] = await Array.fromAsync(load.certificates({ host: HOSTS.large, key: 'ecdsa' }));
  const caches = new Map<string, Cache>();

  const state = path.join(folder, 'edge');
  mkdirSync(state, { mode: 0o700 });
  const [fingerprint] = await writePack(state, [certificate!]);
  const cache = [rule(false), null, rule(true), rule(false)];
  const https = () => httpsWith(fingerprint!);
  writeEdgeState({ folder: state, sites: 4, origin: { address: '127.0.0.1', port: originPort }, cache, https });
  const [port, tlsPort] = [await freePort(), await freePort()];
  const ready = () => answers(port, HOSTS.caching);
  caches.set('edge', {
    server: await start('edge', cpu, edgeCommand(state, port, undefined, tlsPort), port, ready),
    tlsPort,
  });

  const files = writePem(folder, 'large', certificate!);
  const [nginxPort, nginxTls] = [await freePort(), await freePort()];
  const nginx = `  sendfile on; proxy_cache_path ${folder}/nginx-cache levels=1:2 keys_zone=bench:64m max_size=10g use_temp_path=off;
  upstream origin { server 127.0.0.1:${originPort}; keepalive 128; keepalive_requests 10000000; }
  server { listen 127.0.0.1:${nginxPort} backlog=4096; listen 127.0.0.1:${nginxTls} ssl http2;
    ssl_certificate ${files.certificate}; ssl_certificate_key ${files.key}; ssl_protocols TLSv1.2 TLSv1.3;
    location / { proxy_cache bench; proxy_cache_key $scheme$host$request_uri; add_header X-Cache $upstream_cache_status;
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Real-IP $remote_addr; } }`;
  const nginxReady = async () => (await answers(nginxPort, HOSTS.caching)) && answersTls(nginxTls, HOSTS.large);
  const command = nginxCommand(path.join(folder, 'nginx'), nginx);
  caches.set('nginx', { server: await start('nginx', cpu, command, nginxPort, nginxReady), tlsPort: nginxTls });

  const varnishPort = await freePort();
  const varnish = varnishCommand(folder, varnishPort, originPort);
  const varnishReady = () => answers(varnishPort, HOSTS.caching);
  caches.set('varnish', { server: await start('varnish', cpu, varnish, varnishPort, varnishReady), tlsPort: 0 });
  return caches;
}

function originCommand(folder: string, port: number): string[] {
  const files = path.join(folder, 'files');
  mkdirSync(files);
  for (const [name, size] of Object.entries(FILES)) writeFileSync(path.join(files, name), Buffer.alloc(size, 'x'));
  const server = (name: string, first: string) =>
    `  server { listen 127.0.0.1:${port}${name === '_' ? ' backlog=4096' : ''}; server_name ${name}; root ${files}; sendfile on; open_file_cache max=10;
    location = / { ${first} } location = /unstored { add_header Cache-Control no-store; try_files /1k =404; }
    location / { add_header Cache-Control max-age=3600; } }`;
  return nginxCommand(
    path.join(folder, 'origin'),
    [
      server('_', 'return 200 "ready";'),
      server(HOSTS.large, 'add_header Cache-Control max-age=3600; try_files /10m =404;'),
    ].join('\n'),
  );
}

/** Varnish with its store in memory; it is a manager and a child, and each has its memory on a disk of its folder. */
function varnishCommand(folder: string, port: number, originPort: number): string[] {
  const file = path.join(folder, 'bench.vcl');
  writeFileSync(file, `vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "${originPort}"; }\n`);
  const place = path.join(folder, 'varnish');
  return ['varnishd', '-F', '-j', 'none', '-n', place, '-a', `127.0.0.1:${port}`, '-f', file, '-s', 'malloc,256m'];
}

// How many connections an address may hold open at a listener: whoever has one address cannot take them all. Trusted
// reverse proxies are not counted, their connections are many people's.
import type { Socket } from 'node:net';
import { Counter } from 'prom-client';
import { countedAddress, formatAddress } from '../contract/scalars/cidr.ts';
import type { Listener } from './listener.ts';
import type { Runtime } from './runtime.ts';
import { plainAddress, trustedProxies } from './trusted-proxies.ts';

/** One line in the log a minute, however many are refused. */
const LOG_EVERY_MS = 60_000;

/** For a server's `connection`: ends a connection at once whose address holds `limit` already. */
export function connectionLimit(
  { env, log, metrics }: Pick<Runtime, 'env' | 'log' | 'metrics'>,
  listener: Listener['name'],
  limit: number,
): (socket: Socket) => void {
  const isTrusted = trustedProxies(env.trustedProxies);
  const open = new Map<string, number>();
  const refused = counter(metrics);
  let logAgainAt = 0;
  const refuse = (socket: Socket, peer: string) => {
    refused.inc({ listener });
    // The handshake or parser that has begun on it hears of its end, and that is nobody's fault.
    socket.on('error', () => undefined);
    socket.resetAndDestroy();
    if (performance.now() < logAgainAt) return;
    logAgainAt = performance.now() + LOG_EVERY_MS;
    log.warn({ listener, peer, limit }, 'connections refused, address reached its connection limit');
  };
  return (socket) => {
    const address = plainAddress(socket.remoteAddress ?? '');
    if (address === null) {
      // It broke off before anybody looked.
      socket.destroy();
      return;
    }
    if (isTrusted(address)) return;
    const peer = countedAddress(formatAddress(address));
    const count = open.get(peer) ?? 0;
    if (count >= limit) return refuse(socket, peer);
    open.set(peer, count + 1);
    socket.once('close', () => {
      const left = open.get(peer)! - 1;
      if (left > 0) open.set(peer, left);
      else open.delete(peer);
    });
  };
}

/** Both listeners of a process share it. */
function counter(metrics: Runtime['metrics']): Counter<'listener'> {
  const options = {
    name: 'svc_refused_connections_total',
    help: 'Connections refused because their address has too many open, by listener',
    labelNames: ['listener'] as const,
    registers: [metrics],
  };
  const known = metrics.getSingleMetric(options.name) as Counter<'listener'> | undefined;
  return known ?? new Counter(options);
}

// The holder of sockets, `svc-caddy hold`: it keeps what the node listens on open while Caddy is started anew. Who is given
// the path of one (a unit of its own) uses that; else the supervisor runs one in its run folder, which ends with it.
import { createConnection, type Socket } from 'node:net';
import { sleep } from '../../kit/backoff.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { childEnvironment } from './child-environment.ts';
import { ManagedChild } from './managed-child.ts';

const REPLY_MS = 3000;
const START_MS = 10_000;
const POLL_MS = 20;
const MAX_REPLY_BYTES = 64 * 1024;
/** One whose supervisor was killed waits so long for the next; Caddy, which outlives supervisors, counts as somebody, too. */
const LINGER = '60s';
const GRACE_MS = 2000;

export interface HeldSocket {
  network: string;
  /** [address]:port as it was asked for. */
  address: string;
}

interface Reply {
  sockets?: HeldSocket[];
  more?: boolean;
  problem?: string;
}

/** What the holder at `path` has. Rejects when none responds. */
export async function heldSockets(path: string): Promise<HeldSocket[]> {
  const held: HeldSocket[] = [];
  for (let more = true; more; ) {
    const { sockets = [], ...reply } = await ask(path, { do: 'list', from: held.length });
    held.push(...sockets);
    more = reply.more === true && sockets.length > 0;
  }
  return held;
}

/** Has the holder close a socket. */
export async function closeHeld(path: string, socket: HeldSocket): Promise<void> {
  await ask(path, { do: 'close', ...socket });
}

/** One request over a connection of its own: a line, answered by one. */
function ask(path: string, request: Record<string, unknown>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const socket: Socket = createConnection(path);
    let text = '';
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(REPLY_MS, () => fail(new Error('the holder of sockets does not respond')));
    socket.on('error', fail);
    socket.on('close', () => reject(new Error('the holder of sockets ended the connection')));
    socket.on('connect', () => socket.write(`${JSON.stringify(request)}\n`));
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.length > MAX_REPLY_BYTES) return fail(new Error('the reply of the holder is too long'));
      if (!text.endsWith('\n')) return;
      socket.end();
      try {
        const reply = JSON.parse(text) as Reply;
        if (reply.problem === undefined) resolve(reply);
        else reject(new Error(reply.problem));
      } catch (error) {
        reject(error as Error);
      }
    });
  });
}

/** A holder as a child, which takes over from one that a killed supervisor left. */
export function ownHolder(options: {
  caddyBin: string;
  path: string;
  runDir: string;
  log: Log;
  changed: () => void;
}): ManagedChild {
  return new ManagedChild({
    name: 'holder',
    command: options.caddyBin,
    args: ['hold', '--socket', options.path, '--linger', LINGER],
    env: childEnvironment({ SVC_CONFINE: JSON.stringify({ read: [], write: [options.runDir] }) }),
    ipc: false,
    minDelayMs: 1000,
    maxDelayMs: 30_000,
    graceMs: GRACE_MS,
    log: options.log,
    changed: options.changed,
  });
}

/** Waits until a holder responds; undefined when none does, with which the node serves all the same. */
export async function waitForHolder(path: string, log: Log): Promise<HeldSocket[] | undefined> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return await heldSockets(path);
    } catch (error) {
      if (performance.now() - startedAt > START_MS) {
        log.error('holder of sockets does not respond, ports close while the edge server restarts', {
          path,
          reason: errorText(error),
        });
        return undefined;
      }
    }
    await sleep(POLL_MS);
  }
}

/** The host of "[address]:port". */
const hostOf = (address: string): string => address.slice(0, address.lastIndexOf(':'));

/**
 * Has what is held of addresses that the node does not listen on any more closed: it could keep the new ones from being
 * opened. Ports of the cluster lie on the same hosts; of those Caddy closes what is not wanted any more.
 */
export async function closeOtherHosts(
  path: string,
  held: readonly HeldSocket[],
  listen: readonly string[],
): Promise<void> {
  const hosts = new Set(listen.map(hostOf));
  for (const socket of held)
    if (socket.network === 'tcp' && !hosts.has(hostOf(socket.address))) await closeHeld(path, socket);
}

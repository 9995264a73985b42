// Responders that do not do what they should.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { ExecutionContext } from 'ava';
import { until } from './folder.ts';

const DRIP_MS = 5;

/** One that takes connections and never answers, and one that does so a byte at a time without an end. */
export async function slowResponder(t: ExecutionContext, how: 'silent' | 'dripping') {
  const asked = { times: 0 };
  const server = createServer((_, response) => {
    asked.times++;
    if (how === 'silent') return;
    const dripping = setInterval(() => response.write('x'), DRIP_MS);
    response.once('close', () => clearInterval(dripping));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  t.teardown(close);
  return { url: `http://slow.example:${(server.address() as AddressInfo).port}/`, asked, close };
}

/** One whose machine takes no connection any more: its queue is full, and nobody takes one out. */
export async function unreachableResponder(t: ExecutionContext): Promise<string> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  t.teardown(() => worker.terminate());
  const port = await new Promise<number>((resolve) => worker.once('message', resolve));
  // The queue takes one more than it is asked to have.
  for (let queued = 1; queued <= 2; queued++) {
    const socket = connect(port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.on('error', () => undefined);
    await until(t, `${queued} in the queue`, () => queueOf(port) === queued);
  }
  return `http://unreachable.example:${port}/`;
}

/** Connections to a port of this machine that nobody has taken yet. */
function queueOf(port: number): number | undefined {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const LISTENS = '0A';
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n');
  const row = rows.map((line) => line.trim().split(/\s+/)).find(([, at, , state]) => at === local && state === LISTENS);
  return row && Number.parseInt(row[4]!.split(':')[1]!, 16);
}

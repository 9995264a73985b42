// Strangers are few and short-lived, and keep no known node out.
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { Registry } from 'prom-client';
import { Strangers } from '../../../../services/node-channel/strangers.ts';
import { eventually } from '../../../helpers/eventually.ts';

let port = 1;

/** As much of a connection as is looked at, from an address that a test has not got. */
function connection(remoteAddress: string): Socket {
  const socket = Object.assign(new EventEmitter(), { remoteAddress, remotePort: port++, destroyed: false });
  const destroy = () => {
    socket.destroyed = true;
    socket.emit('close');
  };
  return Object.assign(socket, { destroy }) as unknown as Socket;
}

function started(t: ExecutionContext, most: number, limitMs = 3_600_000): Strangers {
  const strangers = new Strangers({ metrics: new Registry() }, most, limitMs);
  t.teardown(() => strangers.stop());
  return strangers;
}

const open = (sockets: readonly Socket[]) => sockets.filter(({ destroyed }) => !destroyed).length;

test('a network that fills the room loses its own connections; a newcomer always has room', (t) => {
  const strangers = started(t, 100);
  const few = Array.from({ length: 10 }, (_, index) => connection(`198.51.100.${index}`));
  for (const socket of few) strangers.add(socket);
  const flood = Array.from({ length: 1_000 }, () => connection('203.0.113.1'));
  for (const socket of flood) strangers.add(socket);
  const newcomer = connection('192.0.2.1');
  strangers.add(newcomer);
  t.is(strangers.size, 100);
  t.is(open(few), 10);
  t.is(open(flood), 89);
  t.false(newcomer.destroyed);
});

test('a flood from as many networks as connections ends its own before those of a network that a node came from', (t) => {
  const strangers = started(t, 100);
  const before = connection('192.0.2.1');
  strangers.add(before);
  strangers.known(before, 'node');
  const node = connection('192.0.2.1');
  strangers.add(node);
  for (let index = 0; index < 1_000; index++) strangers.add(connection(`10.0.${index >> 8}.${index % 256}`));
  t.false(node.destroyed);
  t.false(before.destroyed);
});

test('a stranger ends after its time, one that became known does not, nor one that waits for its enrollment', async (t) => {
  const strangers = started(t, 100, 50);
  const [stranger, node, enrolling] = [1, 2, 3].map((index) => connection(`192.0.2.${index}`)) as [
    Socket,
    Socket,
    Socket,
  ];
  for (const socket of [stranger, node, enrolling]) strangers.add(socket);
  strangers.known(node, 'node');
  const release = strangers.hold(enrolling);
  await eventually(() => stranger.destroyed);
  t.false(enrolling.destroyed);
  release();
  await eventually(() => enrolling.destroyed);
  t.false(node.destroyed);
});

test('of the connections of one node 64 are known, the others stay strangers', (t) => {
  const strangers = started(t, 100);
  const sockets = Array.from({ length: 70 }, () => connection('192.0.2.1'));
  for (const socket of sockets) {
    strangers.add(socket);
    strangers.known(socket, 'node');
  }
  t.is(strangers.size, 6);
  sockets[0]!.destroy();
  strangers.known(sockets[69]!, 'node');
  t.is(strangers.size, 5);
});

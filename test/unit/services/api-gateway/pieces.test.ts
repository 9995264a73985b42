import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import pino from 'pino';
import { errorCodeOf } from '../../../../contract/errors.ts';
import type { Piece } from '../../../../mixins/contract-service.ts';
import type { Answerer } from '../../../../services/api-gateway/answerer.ts';
import type { Exchange } from '../../../../services/api-gateway/exchange.ts';
import { PiecedAnswers, type PieceSource } from '../../../../services/api-gateway/pieces.ts';
import { eventually } from '../../../helpers/eventually.ts';

const MIB = 1024 * 1024;

/** A server that answers every request from the source; what the answers ended with is kept. */
async function serve(t: ExecutionContext, source: PieceSource) {
  const answers = {
    text: ({ response }: Exchange) => {
      response.writeHead(200, { 'content-type': 'text/csv' });
      return response;
    },
  } as unknown as Answerer;
  const pieced = new PiecedAnswers(answers, pino({ level: 'silent' }));
  const ended: unknown[] = [];
  const answer = (caller: string, response: ServerResponse) => {
    const exchange = { response, requestId: 'r', caller: { actor: { type: 'api_key', id: caller, name: '' } } };
    return pieced.answer(exchange as unknown as Exchange, source);
  };
  const server = createServer((request, response) => {
    answer(request.url!, response).then(
      () => ended.push(null),
      (error: unknown) => {
        ended.push(error);
        response.writeHead(errorCodeOf(error) === 'EXPORT_LIMIT' ? 429 : 500).end();
      },
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, ended, get: (path: string) => fetch(`http://127.0.0.1:${port}${path}`) };
}

test('pieces are sent in order, each asked for with what the one before told', async (t) => {
  const asked: (string | null)[] = [];
  const { get, ended } = await serve(t, {
    piece: async (after) => {
      asked.push(after);
      const number = Number(after ?? 0);
      return { text: `${number}\n`, next: number < 3 ? String(number + 1) : null };
    },
    check: async () => undefined,
  });
  t.is(await (await get('/a')).text(), '0\n1\n2\n3\n');
  t.deepEqual(asked, [null, '1', '2', '3']);
  await eventually(() => ended.length === 1);
});

test('what fails before the first piece is an error, what fails later breaks the answer off', async (t) => {
  let failAt: string | null = null;
  const { get, ended } = await serve(t, {
    piece: async (after): Promise<Piece> => {
      if (after === failAt) throw new Error('broken');
      return { text: 'x', next: '1' };
    },
    check: async () => undefined,
  });
  t.is((await get('/a')).status, 500);
  failAt = '1';
  // Its head may have left by then, or not.
  t.is(
    await get('/a')
      .then((answer) => answer.text())
      .catch(() => 'broken off'),
    'broken off',
  );
  await eventually(() => ended.length === 2);
});

test('a client that takes nothing is asked nothing for; when it goes, so does the answer', async (t) => {
  let pieces = 0;
  const { port, ended } = await serve(t, {
    piece: async () => {
      pieces += 1;
      return { text: 'x'.repeat(MIB), next: 'more' };
    },
    check: async () => undefined,
  });
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(socket, 'readable');
  // What the sockets of both sides take, and then nothing more.
  let before = -1;
  await eventually(async () => {
    const quiet = pieces === before;
    before = pieces;
    await new Promise((resolve) => setTimeout(resolve, 300));
    return quiet && pieces === before;
  });
  t.true(pieces < 200);
  socket.destroy();
  await eventually(() => ended.length === 1);
  t.deepEqual(ended, [null]);
});

test('two at a time for a caller, sixteen for all; who ends makes room', async (t) => {
  const gate = Promise.withResolvers<void>();
  let waiting = 0;
  const { get } = await serve(t, {
    piece: async () => {
      waiting += 1;
      await gate.promise;
      return { text: 'x', next: null };
    },
    check: async () => undefined,
  });
  const open = Array.from({ length: 16 }, (_, index) => get(`/${Math.floor(index / 2)}`));
  await eventually(() => waiting === 16);
  t.is((await get('/0')).status, 429);
  t.is((await get('/new')).status, 429);
  gate.resolve();
  for (const answer of await Promise.all(open)) t.is(await answer.text(), 'x');
  await eventually(async () => (await get('/0')).status === 200);
});

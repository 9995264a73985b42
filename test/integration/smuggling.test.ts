// What two readers could divide in different places, in raw bytes through a real edge before a real nginx and a real Node
// server: each case ends in a refusal or in exactly one request at the origin, and nothing behind it is ever taken for
// another request.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { edgeCommand } from '../../bench/lib/edge.ts';
import { siteHost, writeEdgeState } from '../../bench/lib/edge-state.ts';
import { answers, freePort, startServer } from '../../bench/lib/servers.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Asked, type RecordingOrigin, startNginxOrigin, startNodeOrigin } from '../helpers/recording-origins.ts';
import { bytesOf, type SmugglingCase, smugglingCases } from '../helpers/smuggling-cases.ts';

const HOST = siteHost(0);
const TIMEOUT_MS = 20_000;

/** Sends the bytes and reads until the edge ends the connection; the statuses of its final answers, 0 where it does not end. */
function statusesOf(port: number, bytes: string): Promise<number[]> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    let text = '';
    let hangs = false;
    socket.setTimeout(TIMEOUT_MS, () => {
      hangs = true;
      socket.destroy();
    });
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    // An edge that refuses while bytes are still coming may end with a reset; what it said is here already.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      const statuses = [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));
      resolve([...statuses.filter((status) => status >= 200), ...(hangs ? [0] : [])]);
    });
  });
}

async function startEdge(t: ExecutionContext, folder: string, originPort: number): Promise<number> {
  const port = await freePort();
  writeEdgeState({ folder, sites: 1, origin: { address: '127.0.0.1', port: originPort } });
  const ready = () => answers(port, 'nobody.test', 404);
  const server = await startServer('edge', '0-63', edgeCommand(folder, port), port, ready);
  t.teardown(() => server.stop());
  return port;
}

/** What of an outcome differs from what must come of the case; undefined when nothing does. */
function differs(each: SmugglingCase, id: string, statuses: readonly number[], asked: readonly Asked[]) {
  const of = (word: string) => asked.filter(({ target }) => target.includes(`${word}-${id}`));
  const passed = typeof each.want !== 'number';
  const served = each.after === 'served' ? 1 : 0;
  const want = typeof each.want === 'number' ? [] : [expected(each.want, id)];
  const got = of('case').map(({ method, target, host, body }) => ({ method, target, host, body }));
  const right =
    JSON.stringify(got) === JSON.stringify(want) &&
    of('after').length === served &&
    of('smuggled').length === 0 &&
    statuses.length === 1 + served &&
    statuses.every((status, index) => status === (index === 0 && !passed ? each.want : 200));
  return right
    ? undefined
    : JSON.stringify({ case: each.name, statuses, got, want: each.want, after: of('after').length });
}

function expected(
  { method = 'GET', suffix = '', body = '' }: Exclude<SmugglingCase['want'], number>,
  id: string,
): Asked {
  return { method, target: `/case-${id}${suffix}`, host: HOST, body: bytesOf(body, id, HOST) };
}

async function play(t: ExecutionContext, start: (folder: string) => Promise<RecordingOrigin>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'smuggling-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const origin = await start(join(folder, 'origin'));
  t.teardown(() => origin.stop());
  const port = await startEdge(t, join(folder, 'edge'), origin.port);
  const outcomes: { each: SmugglingCase; id: string; statuses: number[] }[] = [];
  for (const [index, each] of smugglingCases.entries()) {
    const id = `${index}x`;
    const after = `GET /after-${id} HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`;
    const statuses = await statusesOf(port, bytesOf(each.bytes, id, HOST) + after);
    outcomes.push({ each, id, statuses });
  }
  const wrong = () => {
    const asked = origin.asked();
    return outcomes.flatMap(({ each, id, statuses }) => differs(each, id, statuses, asked) ?? []);
  };
  // nginx writes its log a moment after its answer.
  await eventually(() => wrong().length === 0, { timeoutMs: 5000, what: 'all to be written down' }).catch(
    () => undefined,
  );
  t.deepEqual(wrong(), []);
  t.deepEqual(
    origin.asked().filter(({ target }) => !/^\/(case|after)-\d+x/.test(target)),
    [],
  );
  t.deepEqual(origin.faults(), []);
}

test('in front of Node every case is refused or one request', async (t) => {
  await play(t, startNodeOrigin);
});

test('in front of nginx every case is refused or one request', async (t) => {
  await play(t, startNginxOrigin);
});

test('every refusal is one of four', (t) => {
  const statuses = new Set(smugglingCases.flatMap(({ want }) => (typeof want === 'number' ? [want] : [])));
  t.deepEqual([...statuses].sort(), [400, 417, 431, 501]);
});

// Thread of the nodes that log: each reports once a second, as agents do, at even times.
import { parentPort, workerData } from 'node:worker_threads';
import { Connection, type Identity } from '../fleet/connection.ts';
import { rowMaker } from './rows.ts';

export interface Senders {
  serverUrl: string;
  identities: readonly Identity[];
  siteIds: readonly string[];
  rowsPerSecond: number;
}

/** What the thread is told: to send or to pause, and to say how many rows the console has. */
export type SenderQuestion = { type: 'send'; on: boolean } | { type: 'count' };
export interface SenderCount {
  acknowledged: number;
  sent: number;
  failed: string;
}

const { serverUrl, identities, siteIds, rowsPerSecond } = workerData as Senders;
const each = Math.round(rowsPerSecond / identities.length);
const count: SenderCount = { acknowledged: 0, sent: 0, failed: '' };
let sending = false;

const nodes = identities.map((identity, index) => ({
  connection: new Connection(serverUrl, identity.authorityPem, identity),
  rows: rowMaker(siteIds, BigInt(index + 1)),
  busy: Promise.resolve(),
}));
let turn = 0;
setInterval(() => {
  const node = nodes[turn++ % nodes.length]!;
  if (!sending) return;
  const rows = node.rows(each);
  count.sent += rows.length;
  node.busy = node.busy
    .then(() => node.connection.call('reportLogs', { rows, ring: 1n, losses: [] }))
    .then(() => {
      count.acknowledged += rows.length;
    })
    .catch((error) => {
      count.failed = String(error);
    });
}, 1000 / nodes.length);

parentPort!.on('message', async (question: SenderQuestion) => {
  if (question.type === 'send') sending = question.on;
  else {
    await Promise.all(nodes.map(({ busy }) => busy));
    parentPort!.postMessage(count);
  }
});

import test from 'ava';
import { LogSender } from '../../../../../agents/edge/logs/log-sender.ts';
import { until } from '../../helpers/folder.ts';

/** A ring as the data plane keeps it: rows stay until they are acknowledged. */
class Ring {
  rows: string[] = [];
  tail = 0;
  readonly ring = 5n;

  drainLogs = async (taken: { ring: bigint; position: bigint } | undefined) => {
    if (taken?.ring === this.ring) {
      this.rows.splice(0, Number(taken.position) - this.tail);
      this.tail = Math.max(this.tail, Number(taken.position));
    }
    const rows = this.rows.slice(0, 1000).map((row) => Buffer.from(row));
    return { ring: this.ring, position: BigInt(this.tail + rows.length), rows, losses: [] } as never;
  };
}

function start(report: (rows: string[], lane: string) => void) {
  const ring = new Ring();
  const lane = (name: string) => ({
    reportLogs: async ({ rows = [] }: { rows?: Uint8Array[] }) => {
      report(
        rows.map((row) => Buffer.from(row).toString()),
        name,
      );
      return { refused: 0 } as never;
    },
  });
  let opened = 0;
  let closed = 0;
  const present = lane('present');
  const sender = new LogSender({
    client: ring,
    channel: () => present,
    openBacklog: () => {
      opened++;
      return { ...lane('backlog'), close: () => void closed++ };
    },
    offsetMs: () => 0,
    log: { warn: () => undefined, info: () => undefined, error: () => undefined, debug: () => undefined } as never,
  });
  return { ring, sender, lanes: () => ({ opened, closed }) };
}

test('a row is given up only when the console has it', async (t) => {
  let refuse = true;
  const stored: string[] = [];
  const { ring, sender } = start((rows) => {
    if (refuse) {
      refuse = false;
      throw new Error('the console is away');
    }
    stored.push(...rows);
  });
  ring.rows.push('a', 'b');
  sender.look();
  await until(t, 'the sender', () => !refuse);
  t.deepEqual(ring.rows, ['a', 'b']);
  sender.hurry();
  await until(t, 'the sender', () => ring.rows.length === 0);
  t.deepEqual(stored, ['a', 'b']);
  await sender.stop();
});

test('what has piled up goes over a connection of its own, which is closed after it', async (t) => {
  const lanes: string[] = [];
  const { ring, sender, lanes: counted } = start((rows, lane) => void lanes.push(`${lane} ${rows.length}`));
  ring.rows.push(...Array.from({ length: 2500 }, (_, index) => String(index)));
  sender.look();
  await until(t, 'the sender', () => ring.rows.length === 0);
  await until(t, 'the sender', () => counted().closed === 1);
  t.deepEqual(lanes, ['backlog 1000', 'backlog 1000', 'present 500']);
  t.is(counted().opened, 1);
  await sender.stop();
});

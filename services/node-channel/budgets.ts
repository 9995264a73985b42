// What one node may ask of this process, by lane. A node over its budget waits or is refused alone: no other node has
// less because of it, and its own other lanes go on.
//
// | Limit            | Over it                                                                    |
// | calls at once    | the call waits, with its body unread; beyond `waiting` it is refused       |
// | bytes at once    | the call is refused                                                        |
// | calls, rows and bytes a minute | calls are refused until the budget has refilled              |
import { Code, ConnectError } from '@connectrpc/connect';
import { Counter } from 'prom-client';
import type { Runtime } from '../../runtime/runtime.ts';
import { Bucket } from './bucket.ts';

export interface Budget {
  atOnce: number;
  waiting: number;
  /** Of bodies that are being received or worked on. */
  bytesAtOnce: number;
  calls: number;
  rows: number;
  bytes: number;
}

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** Many times what an agent under attack needs. The largest body, 16 MiB, has room in each lane but that of tails. */
export const BUDGETS = {
  /** Positions, heartbeats, streams, tasks, certificates of the node itself. */
  control: { atOnce: 8, waiting: 24, bytesAtOnce: 16 * MIB, calls: 3_000, rows: 100_000, bytes: 256 * MIB },
  /** Bans and security events that the node reports. */
  security: { atOnce: 4, waiting: 16, bytesAtOnce: 16 * MIB, calls: 600, rows: 30_000, bytes: 512 * MIB },
  /** Counts and vitals. */
  telemetry: { atOnce: 3, waiting: 16, bytesAtOnce: 16 * MIB, calls: 1_200, rows: 600_000, bytes: 512 * MIB },
  /** Requests of watched sites: small, and of no use later. */
  tail: { atOnce: 2, waiting: 4, bytesAtOnce: 8 * MIB, calls: 900, rows: 60_000, bytes: 128 * MIB },
  /** What a node fetches: its bytes are those of the responses, too. */
  bulk: { atOnce: 4, waiting: 32, bytesAtOnce: 16 * MIB, calls: 3_000, rows: 100_000, bytes: 4 * GIB },
} as const satisfies Record<string, Budget>;

export type Lane = keyof typeof BUDGETS;
type Limit = 'calls at once' | 'bytes at once' | 'calls' | 'rows' | 'bytes';

/** What a call may still use; from its admission to the end of its response. */
export interface Allowance {
  /** Bytes of the body as they arrive. Throws resource_exhausted. */
  receive(bytes: number): void;
  /** Rows that the call brings. Throws resource_exhausted: nothing of the call is stored then. */
  rows(rows: number): void;
  /** Bytes of the response. */
  send(bytes: number): void;
}

/** Of a call that is not counted. */
export const UNCOUNTED: Allowance = { receive: () => undefined, rows: () => undefined, send: () => undefined };

interface Account {
  running: number;
  bytes: number;
  line: (() => void)[];
  calls: Bucket;
  rows: Bucket;
  allBytes: Bucket;
}

export type Table = Readonly<Record<Lane, Budget>>;
const FORGET_MS = 60_000;

export class Budgets {
  readonly #table: Table;
  readonly #accounts = new Map<string, Account>();
  readonly #over: (nodeId: string, lane: Lane) => void;
  readonly #refused: Counter<'lane' | 'limit'>;
  #forgetAt = performance.now() + FORGET_MS;

  /** `over` hears of each refusal. */
  constructor(
    { metrics }: Pick<Runtime, 'metrics'>,
    over: (nodeId: string, lane: Lane) => void,
    table: Table = BUDGETS,
  ) {
    this.#table = table;
    this.#over = over;
    this.#refused = new Counter({
      name: 'svc_node_budget_refusals_total',
      help: 'Calls of nodes refused because the node is over its budget, by lane and limit.',
      labelNames: ['lane', 'limit'],
      registers: [metrics],
    });
  }

  /** Waits for a place and returns what the call may use. `onEnd` must call each listener once the call is over. */
  async admit(nodeId: string, lane: Lane, onEnd: (listener: () => void) => void): Promise<Allowance> {
    const account = this.#account(nodeId, lane);
    const budget = this.#table[lane];
    const refuse = (limit: Limit) => this.#refuse(nodeId, lane, limit);
    if (!account.calls.open) refuse('calls');
    if (!account.rows.open) refuse('rows');
    if (!account.allBytes.open) refuse('bytes');
    account.calls.spend(1);
    await this.#enter(account, budget, onEnd, refuse);
    let held = 0;
    onEnd(() => {
      account.bytes -= held;
      held = 0;
    });
    return {
      receive: (bytes) => {
        if (account.bytes + bytes > budget.bytesAtOnce) refuse('bytes at once');
        account.bytes += bytes;
        held += bytes;
        account.allBytes.spend(bytes);
      },
      rows: (rows) => {
        if (!account.rows.open) refuse('rows');
        account.rows.spend(rows);
      },
      send: (bytes) => account.allBytes.spend(bytes),
    };
  }

  /** Resolves when the call has one of the node's places, which it leaves at its end. */
  async #enter(
    account: Account,
    { atOnce, waiting }: Budget,
    onEnd: (listener: () => void) => void,
    refuse: (limit: Limit) => never,
  ): Promise<void> {
    let over = false;
    let inside = false;
    const leave = () => {
      const next = account.line.shift();
      if (next) next();
      else account.running -= 1;
    };
    if (account.running < atOnce) {
      account.running += 1;
      inside = true;
    } else if (account.line.length >= waiting) refuse('calls at once');
    onEnd(() => {
      over = true;
      if (inside) leave();
    });
    if (inside) return;
    await new Promise<void>((resolve) => account.line.push(resolve));
    inside = true;
    // The peer broke off while the call waited.
    if (over) {
      leave();
      throw new ConnectError('the connection was closed during the call', Code.Canceled);
    }
  }

  #refuse(nodeId: string, lane: Lane, limit: Limit): never {
    this.#refused.inc({ lane, limit });
    this.#over(nodeId, lane);
    const perMinute = limit.endsWith('at once') ? '' : ' a minute';
    throw new ConnectError(
      `the node is over its budget of ${lane} ${limit}${perMinute}; retry later`,
      Code.ResourceExhausted,
    );
  }

  #account(nodeId: string, lane: Lane): Account {
    this.#forgetIdle();
    const key = `${lane} ${nodeId}`;
    let account = this.#accounts.get(key);
    if (!account) {
      const { calls, rows, bytes } = this.#table[lane];
      account = {
        running: 0,
        bytes: 0,
        line: [],
        calls: new Bucket(calls),
        rows: new Bucket(rows),
        allBytes: new Bucket(bytes),
      };
      this.#accounts.set(key, account);
    }
    return account;
  }

  #forgetIdle(): void {
    const now = performance.now();
    if (now < this.#forgetAt) return;
    this.#forgetAt = now + FORGET_MS;
    for (const [key, { running, line, calls, rows, allBytes }] of this.#accounts) {
      if (running === 0 && line.length === 0 && calls.full && rows.full && allBytes.full) this.#accounts.delete(key);
    }
  }
}

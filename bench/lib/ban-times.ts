// Bans from the API request to their receipt by each node of a simulated fleet.
import { setTimeout as sleep } from 'node:timers/promises';
import { clockMs } from '../fleet/fleet.ts';
import type { ConsoleStack } from './console-stack.ts';
import type { FleetProcess } from './fleet-process.ts';

/** Between two bans: the reports of the one before are in. */
const PAUSE_MS = 200;
/** One takes 600 requests in a row. */
const BANS_PER_KEY = 300;

export class Bans {
  readonly #stack: ConsoleStack;
  readonly #fleet: FleetProcess;
  #made = 0;

  constructor(stack: ConsoleStack, fleet: FleetProcess) {
    this.#stack = stack;
    this.#fleet = fleet;
  }

  /** Milliseconds from each of so many bans to its receipt by each node. */
  async measure(count: number): Promise<number[]> {
    const times: number[] = [];
    for (let ban = 0; ban < count; ban++) {
      const begun = clockMs();
      const received = await this.#fleet.receivedBan(await this.#make());
      times.push(...received.map((at) => at - begun));
      await sleep(PAUSE_MS);
    }
    return times;
  }

  async #make(): Promise<string> {
    const { client } = this.#stack;
    if (this.#made % BANS_PER_KEY === 0) await client.createKey(`bans ${this.#made}`);
    const index = this.#made++;
    const cidr = `198.51.${100 + Math.floor(index / 250)}.${(index % 250) + 1}`;
    const body = { scope: 'platform', cidr, reason: 'attack', durationSeconds: 3600 };
    const answer = await client.request('POST', '/api/v1/bans', body, { 'x-api-key': client.accessKey });
    const change = /^ban=\d+:(\d+)$/.exec(answer.headers.get('x-svc-change') ?? '');
    if (!change) throw new Error(`POST /bans answered ${answer.status} ${JSON.stringify(answer.body)}`);
    return change[1]!;
  }
}

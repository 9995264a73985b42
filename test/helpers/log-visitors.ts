// Visitors that ask for a path of their own with each request, over kept connections, and know which were answered.
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const TIMEOUT_MS = 60_000;
const MOST_BYTES = 3_000;
const FAILED_MS = 50;

export class LogVisitors {
  readonly #port: number;
  readonly #domain: string;
  readonly #name: string;
  /** Paths of requests that were answered in full. */
  readonly answered: string[] = [];
  readonly failures: string[] = [];
  asked = 0;

  /** Paths begin with `/name/`. */
  constructor(port: number, domain: string, name: string) {
    this.#port = port;
    this.#domain = domain;
    this.#name = name;
  }

  /** So many at once, each with a pause after a request, until `enough`. */
  async run(workers: number, enough: () => boolean, pauseMs = 0): Promise<void> {
    await Promise.all(
      Array.from({ length: workers }, async () => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        while (!enough()) {
          const failed = await this.ask(agent).then(
            () => false,
            (error) => this.failures.push(String(error)) > 0,
          );
          const wait = failed ? FAILED_MS : pauseMs;
          if (wait > 0) await delay(wait);
        }
        agent.destroy();
      }),
    );
  }

  /** Rejects where there is no response 200 in full. */
  ask(agent?: Agent): Promise<void> {
    const number = this.asked++;
    const path = `/${this.#name}/${number}`;
    const body = number % 4 === 0 ? 'b'.repeat((number * 37) % MOST_BYTES) : '';
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          ...{ host: '127.0.0.1', port: this.#port, method: body === '' ? 'GET' : 'POST' },
          path: `${path}?size=${(number * 53) % MOST_BYTES}`,
          headers: { host: this.#domain, ...(body !== '' && { 'content-length': body.length }) },
          timeout: TIMEOUT_MS,
          ...(agent && { agent }),
        },
        (response) => {
          response.on('error', reject).on('end', () => {
            if (response.statusCode !== 200 || !response.complete) return reject(new Error(`${response.statusCode}`));
            this.answered.push(path);
            resolve();
          });
          response.resume();
        },
      );
      sent.on('timeout', () => sent.destroy(new Error('no response')));
      sent.on('error', reject).end(body);
    });
  }
}

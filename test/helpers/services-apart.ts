// A console whose services run in processes of their own, over a Redis that can be stopped.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { root } from '../../bin/lib/root.ts';
import { startTestConsoleProcess, type TestConsoleOptions, type TestConsoleProcess } from './console.ts';
import { eventually } from './eventually.ts';
import { createTestDatabase, privateServers, type TestDatabase } from './servers.ts';
import { type TcpProxy, tcpProxy, throughProxy } from './tcp-proxy.ts';

const GATEWAY = ['api-gateway', 'auth', 'access-keys', 'account', 'system'];

/** Services of each process; `sites` gets those that are in none. */
const PROCESSES = {
  front: GATEWAY,
  gateway: GATEWAY,
  sites: ['sites'],
  protection: ['protection'],
  bans: ['bans'],
  moreBans: ['bans'],
  waf: ['waf'],
  usage: ['usage'],
  channel: ['node-channel'],
  moreChannel: ['node-channel'],
  worker: ['housekeeping', 'relay', 'revision-fanout', 'canary-fanout', 'ban-fanout', 'acme-fanout', 'purge-fanout'],
};
export type ProcessName = keyof typeof PROCESSES | 'thirdBans';

function servicesOf(name: ProcessName): string[] {
  if (name === 'thirdBans') return PROCESSES.bans;
  if (name !== 'sites') return PROCESSES[name];
  const placed = new Set(Object.values(PROCESSES).flat());
  const folders = readdirSync(join(root, 'services'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return ['sites', ...folders.map((folder) => folder.name).filter((each) => each !== 'gen' && !placed.has(each))];
}

interface Readiness {
  ready: boolean;
  redis: boolean;
  missing: string[];
}

type PrivateServers = Awaited<ReturnType<typeof privateServers>>;

export class ServicesApart {
  /** All processes, `front` first. */
  static readonly names = Object.keys(PROCESSES) as readonly ProcessName[];
  readonly sql: pg.Pool;
  readonly link: TcpProxy;
  readonly #servers: PrivateServers;
  readonly #database: TestDatabase;
  readonly #running = new Map<ProcessName, TestConsoleProcess>();
  #shared: TestConsoleOptions;

  private constructor(servers: PrivateServers, database: TestDatabase, link: TcpProxy) {
    this.#servers = servers;
    this.#database = database;
    this.link = link;
    this.sql = new pg.Pool({ connectionString: database.url, max: 4 });
    this.#shared = { database: { url: database.url }, env: { REDIS_URL: throughProxy(servers.redisUrl, link) } };
  }

  static async start(): Promise<ServicesApart> {
    const servers = await privateServers();
    const apart = new ServicesApart(servers, await createTestDatabase(servers), await tcpProxy(servers.redisUrl));
    try {
      const { env } = await apart.run('front');
      const [masterKey, redisPrefix] = [env.SVC_MASTER_KEY!, env.SVC_REDIS_PREFIX!];
      apart.#shared = { ...apart.#shared, masterKey, redisPrefix, setUp: false };
      await Promise.all(ServicesApart.names.slice(1).map((name) => apart.run(name)));
      await apart.complete('front', 'gateway');
    } catch (error) {
      await apart.stop();
      throw error;
    }
    return apart;
  }

  /** Starts the process. */
  async run(name: ProcessName): Promise<TestConsoleProcess> {
    const env = { ...this.#shared.env, SERVICES: servicesOf(name).join(',') };
    const started = await startTestConsoleProcess({ ...this.#shared, env });
    this.#running.set(name, started);
    return started;
  }

  process(name: ProcessName): TestConsoleProcess {
    return this.#running.get(name)!;
  }

  /** SIGTERM, and waits for the end. */
  async end(name: ProcessName): Promise<void> {
    const ending = this.process(name);
    this.#running.delete(name);
    await ending.stop();
  }

  /** kill −9. */
  async kill(name: ProcessName): Promise<void> {
    await this.process(name).kill();
    await this.end(name);
  }

  async readiness(name: ProcessName): Promise<Readiness> {
    return (await (await fetch(`${this.process(name).metricsUrl}/readyz`)).json()) as Readiness;
  }

  metrics(name: ProcessName): Promise<string> {
    return fetch(`${this.process(name).metricsUrl}/metrics`).then((response) => response.text());
  }

  /** Waits until these processes know of every service. */
  async complete(...names: ProcessName[]): Promise<void> {
    const known = async () =>
      (await Promise.all(names.map((name) => this.readiness(name)))).every(({ missing }) => missing.length === 0);
    await eventually(known, { what: 'all services to be known' });
  }

  /** Redis answers nothing and breaks no connection. */
  stallRedis(stalled: boolean): void {
    process.kill(this.#servers.redis.pid, stalled ? 'SIGSTOP' : 'SIGCONT');
  }

  /** kill −9 of Redis, and no connection for so long. */
  async restartRedis(milliseconds: number): Promise<void> {
    this.link.cut();
    process.kill(this.#servers.redis.pid, 'SIGKILL');
    await delay(milliseconds);
    this.link.restore();
  }

  /** The last errors of each process. */
  errors(): string[] {
    return [...this.#running].flatMap(([name, process]) => {
      const lines = process.log().split('\n');
      const errors = lines.filter((line) => line.includes('"level":"error"') || !line.startsWith('{'));
      return errors.slice(-5).map((line) => `${name}: ${line}`);
    });
  }

  async stop(): Promise<void> {
    for (const { child } of this.#running.values()) if (child.running()) process.kill(child.pid, 'SIGCONT');
    await Promise.all([...this.#running.values()].map((each) => each.stop()));
    await this.sql.end();
    await this.link.close();
    await this.#database.drop();
    await this.#servers.stop();
  }
}

export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are judged by the assertions
  body: any;
}

/** Between two attempts of a request. */
const PAUSE_MS = 100;

/** Requests with an access key of their own through gateways in turn. */
export class Caller {
  readonly #apart: ServicesApart;
  readonly #key: string;
  readonly #gateways: readonly ProcessName[];
  #turn = 0;
  /** Attempts that were refused or broke. */
  failures: string[] = [];

  private constructor(apart: ServicesApart, key: string, gateways: readonly ProcessName[]) {
    this.#apart = apart;
    this.#key = key;
    this.#gateways = gateways;
  }

  static async create(apart: ServicesApart, name: string, gateways: readonly ProcessName[]): Promise<Caller> {
    return new Caller(apart, await apart.process('front').client.createKey(name), gateways);
  }

  /** One attempt; null when the connection broke. */
  async once(method: string, path: string, body?: object, idempotencyKey?: string): Promise<Answer | null> {
    const headers = { 'x-api-key': this.#key, ...(idempotencyKey && { 'idempotency-key': idempotencyKey }) };
    const gateways = this.#gateways.filter((name) => this.#apart.process(name));
    const { client } = this.#apart.process(gateways[this.#turn++ % gateways.length]!);
    const answer = await client.request<Answer['body']>(method, `/api/v1${path}`, body, headers).catch(() => null);
    if (answer === null || answer.status > 299)
      this.failures.push(`${method} ${path}: ${answer?.status ?? 'broken'} ${JSON.stringify(answer?.body ?? null)}`);
    return answer;
  }

  /** Sends the request, with the same idempotency key, until it is confirmed; throws when it is refused for good. */
  async confirmed(method: string, path: string, body?: object, idempotencyKey?: string): Promise<Answer['body']> {
    for (;;) {
      const answer = await this.once(method, path, body, idempotencyKey);
      if (answer && answer.status < 300) return answer.body;
      const inProgress = answer?.body.code === 'IDEMPOTENCY_IN_PROGRESS';
      if (answer && answer.status < 500 && answer.status !== 429 && !inProgress) throw new Error(this.failures.at(-1));
      // Ten minutes later: an attempt whose gateway died counts as interrupted.
      if (inProgress)
        await this.#apart.sql.query(
          `update idempotency_record set started_at = now() - interval '11 minutes' where key = $1 and state = 'running'`,
          [idempotencyKey],
        );
      await delay(PAUSE_MS);
    }
  }
}

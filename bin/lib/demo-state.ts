// What the demo remembers between starts, and what it tells scripts.
import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Operator } from './console-client.ts';
import { Refusal } from './progress.ts';

/** Grows step by step; each step is saved when it is done, so that a killed start goes on where it was. */
export interface DemoState {
  operator: Operator & { name: string };
  accessKey?: string;
  clusterId?: string;
  /** The cluster and console settings below were made. */
  configured?: boolean;
  site?: { id: string; host: string };
  node?: { id: string; server: string };
  /** The site's certificate, the SHA-256 of the authority that issued it, and whether the site was given it. */
  certificate?: { id: string; authority: string; chosen: boolean };
  /** The one of --acme. */
  acmeCertificate?: string;
}

/** demo.json: the demo as scripts see it. */
export interface DemoFacts {
  consoleUrl: string;
  nodeApiUrl: string;
  accessKey: string;
  operator: Operator;
  clusterId: string;
  nodeId: string;
  /** host:port of the edge, without TLS and with. */
  edge: { http: string; https: string };
  /** PEM file of the authority that issued the site's certificate. */
  caFile: string;
  /** host:port. */
  origin: string;
  clientIpHeader: string;
  site: { id: string; host: string };
  pids: { console: number; agent: number; caddy: number };
}

/** What the demo in `folder` told scripts; a refusal when none is ready there. */
export function readDemoFacts(folder: string): DemoFacts {
  try {
    return JSON.parse(readFileSync(join(folder, 'demo.json'), 'utf8')) as DemoFacts;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Refusal(`no demo is ready in ${folder}. Start one with: npm run demo`);
  }
}

function writePrivate(file: string, value: unknown): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export class DemoMemory {
  readonly state: DemoState;
  readonly #stateFile: string;
  readonly #factsFile: string;

  constructor(stateFile: string, factsFile: string) {
    this.#stateFile = stateFile;
    this.#factsFile = factsFile;
    this.state = readState(stateFile);
    this.save({});
  }

  /** Adds to the state and writes it. */
  save(change: Partial<DemoState>): void {
    Object.assign(this.state, change);
    writePrivate(this.#stateFile, this.state);
  }

  publish(facts: DemoFacts): void {
    writePrivate(this.#factsFile, facts);
  }

  /** Scripts wait for the file: it is there only while the demo is ready. */
  withdraw(): void {
    rmSync(this.#factsFile, { force: true });
  }
}

function readState(file: string): DemoState {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as DemoState;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const password = randomBytes(15).toString('base64url');
    return { operator: { name: 'Demo', email: 'demo@example.com', password } };
  }
}

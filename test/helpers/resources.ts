// Short words for tests of resources through /api/v1.
import { setTimeout as delay } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import type { ExecutionContext } from 'ava';
import type { Knex } from 'knex';
import type { Answer } from '../../bin/lib/console-client.ts';
import { SiteSchema } from '../../proto/gen/svc/config/v1/site_pb.js';
import type { TestConsole } from './console.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies are judged by the assertions
export type Body = any;

/** Stays below the requests that one access key may make in a row. */
const CALLS_PER_KEY = 400;
const ATTEMPTS = 20;

export class Api {
  readonly console: TestConsole;
  #calls = 0;
  #renewing: Promise<unknown> | null = null;

  constructor(console: TestConsole) {
    this.console = console;
  }

  get sql(): Knex {
    return this.console.running.runtime.pools.api;
  }

  /** Any call, again while the console is busy; never throws for a status. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<Body>> {
    if (this.#calls++ >= CALLS_PER_KEY) {
      this.#renewing ??= this.console.client.createKey('next').finally(() => {
        this.#calls = 0;
        this.#renewing = null;
      });
      await this.#renewing;
    }
    const { client } = this.console;
    for (let attempt = 1; ; attempt++) {
      const answer = await client.request<Body>(method, `/api/v1${path}`, body, {
        'x-api-key': client.accessKey,
        ...headers,
      });
      // A starved machine meets the bounds on locks and transactions; clients try again as the answer says.
      if (answer.status !== 503 || attempt === ATTEMPTS) return answer;
      await delay(answer.body.data.retryAfterSeconds * 1000);
    }
  }

  /** The body of a call that must be answered with 2xx. */
  async ok(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await this.call(method, path, body);
    if (answer.status > 299) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** The call must be refused so; answers data. */
  async refused(
    t: ExecutionContext<unknown>,
    [status, code]: [number, string],
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Body> {
    const answer = await this.call(method, path, body);
    t.is(`${answer.status} ${answer.body.code}`, `${status} ${code}`, `${method} ${path} ${JSON.stringify(body)}`);
    return answer.body.data;
  }

  /** The call must be refused for one field; answers the issue's keyword. */
  async badField(
    t: ExecutionContext<unknown>,
    field: string,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<void> {
    const data = await this.refused(t, [400, 'BAD_REQUEST'], method, path, body);
    const paths = (data.issues as { path: string }[]).map((issue) => issue.path);
    t.true(paths.includes(field), `${field} is not in ${paths.join(' ')}`);
  }

  async cluster(name: string): Promise<string> {
    return (await this.ok('POST', '/clusters', { name })).id;
  }

  async site(clusterId: string, domain: string, more: Record<string, unknown> = {}): Promise<Body> {
    const input = { clusterId, domains: [domain], origins: [{ address: 'origin.example' }], ...more };
    return (await this.ok('POST', '/sites', input)).site;
  }

  /** A node row as enrollment and heartbeats leave it. */
  async node(
    clusterId: string,
    name: string,
    { addresses = [], features = [], online = true, status = 'active' }: Partial<TestNode> = {},
  ): Promise<string> {
    const { sql } = this;
    const group = await sql('node_group').where({ cluster_id: clusterId, is_default: true }).first('id');
    const [{ id }] = await sql('node')
      .insert({ cluster_id: clusterId, node_group_id: group.id, name, status })
      .returning('id');
    await sql('node_state').insert({
      node_id: id,
      features,
      data_plane_healthy: true,
      last_seen_at: online ? new Date() : new Date(0),
    });
    for (const address of addresses) {
      await sql('node_address').insert({ node_id: id, cluster_id: clusterId, address, source: 'reported' });
    }
    return id;
  }

  /** Audit actions about a target, oldest first. */
  async audit(targetId: string | null): Promise<{ action: string; metadata: Body; actorType: string }[]> {
    const rows = await this.sql('audit_entry').where({ target_id: targetId }).orderBy('id');
    return rows.map((row) => ({ action: row.action, metadata: row.metadata, actorType: row.actor_type }));
  }

  /** Reasons of a cluster's revisions, oldest first. */
  async reasons(clusterId: string): Promise<string[]> {
    return (await this.sql('config_revision').where({ cluster_id: clusterId }).orderBy('number')).map(
      (row) => row.reason,
    );
  }

  /** Ids of the cluster's live entries of a kind. */
  async entries(clusterId: string, kind: string): Promise<string[]> {
    const rows = await this.sql('config_entry').where({ cluster_id: clusterId, kind, to_revision: null });
    return rows.map((row) => row.resource_id).sort();
  }

  /** Body of a live entry. */
  async entry(clusterId: string, kind: string, id: string): Promise<Buffer | undefined> {
    const row = await this.sql('config_entry')
      .join('config_blob', 'hash', 'blob_hash')
      .where({ cluster_id: clusterId, kind, resource_id: id, to_revision: null })
      .first('body');
    return row?.body;
  }
}

/** The ids by which nodes know the origins of a site, in their order. */
export async function originIdsOf(api: Api, clusterId: string, siteId: string): Promise<string[]> {
  const { origins } = fromBinary(SiteSchema, (await api.entry(clusterId, 'site', siteId))!);
  return origins.map(({ id }) => id);
}

export interface TestNode {
  addresses: string[];
  features: string[];
  online: boolean;
  status: 'active' | 'disabled';
}

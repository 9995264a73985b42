// Kind "listen-ports": what a cluster listens on besides 80 and 443. Without an entry that is nothing.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import { ListenPortsSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import type { Missing, Reference } from '../config/entry-kind.ts';
import { singleClusterKind } from '../config/single-cluster-kind.ts';
import { readClusterSetting, type SettingColumn } from './cluster-settings.ts';

export const LISTEN_PORTS_KIND = 'listen-ports';

/** As saved in cluster.listen_ports: sorted, each port once and in one list. */
export interface ListenPorts {
  httpPorts: number[];
  httpsPorts: number[];
}

export const LISTEN_PORTS: SettingColumn<ListenPorts> = {
  column: 'listen_ports',
  read: (saved) => (saved as ListenPorts | null) ?? { httpPorts: [], httpsPorts: [] },
};

export const listenPortsKind = singleClusterKind({
  kind: LISTEN_PORTS_KIND,
  setting: LISTEN_PORTS,
  compilerVersion: 1,
  // What an earlier revision had may be another program's by now.
  onRollback: 'current',
  provides: { port: missingPorts },
  compile(ports) {
    if (ports.httpPorts.length + ports.httpsPorts.length === 0) return null;
    return {
      body: toBinary(ListenPortsSchema, create(ListenPortsSchema, ports)),
      features: ['edge-ports-v1'],
      refs: [],
    };
  },
});

/** How an entry refers to a port of its cluster. */
export function portReference(protocol: 'http' | 'https', port: number): string {
  return `port:${protocol}/${port}`;
}

/** Ports that the cluster does not have for the protocol any more, or that a canary alone listens on. */
async function missingPorts(sql: Knex, clusterId: string, references: readonly Reference[]): Promise<Missing[]> {
  const found = await readClusterSetting(sql, clusterId, LISTEN_PORTS);
  const there = namesOf(found?.settings ?? LISTEN_PORTS.read(null)).intersection(await portsOfAll(sql, clusterId));
  return references
    .filter(({ name }) => !there.has(name))
    .map((reference) => ({ ...reference, type: 'listen_port', label: reference.name }));
}

/** What all nodes are to listen on. */
async function portsOfAll(sql: Knex, clusterId: string): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { body: Buffer }[] }>(
    `select b.body from config_entry e join config_blob b on b.hash = e.blob_hash
      where e.cluster_id = ? and e.track = 'S' and e.kind = ? and e.resource_id = '' and e.to_revision is null`,
    [clusterId, LISTEN_PORTS_KIND],
  );
  return new Set(rows.flatMap(({ body }) => [...namesOf(fromBinary(ListenPortsSchema, body))]));
}

function namesOf({ httpPorts, httpsPorts }: ListenPorts): Set<string> {
  return new Set([...httpPorts.map((port) => `http/${port}`), ...httpsPorts.map((port) => `https/${port}`)]);
}

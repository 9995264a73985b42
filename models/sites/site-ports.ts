// Ports that sites use of what their cluster listens on.
import type { Knex } from 'knex';
import { LISTEN_PORTS, LISTEN_PORTS_KIND, type ListenPorts, portReference } from '../clusters/listen-ports.entry.ts';
import type { EntryName } from '../config/write-revision.ts';

export interface SitePorts {
  http: number[];
  https: number[];
}

/** Those that every node has, and sites unless they say otherwise. */
export const USUAL_PORTS: SitePorts = { http: [80], https: [443] };

/** Whether they are what a site has that says nothing. */
export function areUsual({ http, https }: SitePorts): boolean {
  return http.length === 1 && http[0] === 80 && https.length === 1 && https[0] === 443;
}

/**
 * What is published with the entry of a site with these ports: an abort of a canary can have taken the cluster's from nodes,
 * and settings still have them.
 */
export function entriesBeside(ports: SitePorts): EntryName[] {
  return areUsual(ports) ? [] : [{ kind: LISTEN_PORTS_KIND, id: '' }];
}

/** The port that cannot do without a certificate: none of them while HTTPS has its usual port alone and HTTP has one. */
export function portInNeedOfCertificate({ http, https }: SitePorts): number | undefined {
  return http.length === 0 ? https[0] : https.find((port) => port !== 443);
}

/** Whether visitors may be sent to the port: 443 always, which need not be the site's own. */
export function hasHttpsPort({ https }: SitePorts, port: number): boolean {
  return port === 443 || https.includes(port);
}

/**
 * What sites of the cluster may use besides the usual ports, kept until the end of the transaction; undefined without
 * the cluster. Before any site is locked, as everywhere.
 */
export async function keepListenPorts(sql: Knex, clusterId: string): Promise<ListenPorts | undefined> {
  const row = await sql('cluster').where({ id: clusterId }).forShare().first(LISTEN_PORTS.column);
  return row && LISTEN_PORTS.read(row[LISTEN_PORTS.column]);
}

/** The first of the ports that sites of the cluster use, by their settings or by what nodes run, with the names of the first five; undefined when none do. */
export async function portInUse(
  sql: Knex,
  clusterId: string,
  protocol: keyof SitePorts,
  ports: readonly number[],
): Promise<{ port: number; sites: string[] } | undefined> {
  if (ports.length === 0) return undefined;
  const { rows } = await sql.raw<{ rows: { port: number; sites: string[] }[] }>(
    `select port, (array_agg(name order by lower(name), id))[1:5] as sites from (
       select p.port::int as port, s.name, s.id
         from site s cross join lateral jsonb_array_elements(s.ports -> :protocol) as p(port)
        where s.cluster_id = :clusterId and s.ports <> '${JSON.stringify(USUAL_PORTS)}'::jsonb
          and p.port::int = any(:ports)
       union
       select p.port, s.name, s.id from unnest(:ports::int[], :refs::text[]) as p(port, ref)
         join config_entry e on e.cluster_id = :clusterId and e.kind = 'site' and e.to_revision is null
           and e.features @> '{edge-ports-v1}'::text[] and e.refs @> array[p.ref]
         join site s on s.id = e.resource_id) used
      group by port order by port limit 1`,
    {
      protocol,
      clusterId,
      ports: [...ports] as never,
      refs: ports.map((port) => portReference(protocol, port)) as never,
    },
  );
  return rows[0];
}

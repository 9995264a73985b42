import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { security } from '../../contract/resources/security.ts';
import { LEVELS } from '../../contract/scalars/challenge.ts';
import { type EventRow, eventCount, eventPage, heaviest, nodeLevels } from '../../models/security/security-view.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Event = Output<typeof security.events>['items'][number];

const DEFAULT_HOURS = 24;

/** Throws SITE_NOT_FOUND. */
export async function securityState(
  { pools }: Runtime,
  { id, hours = DEFAULT_HOURS }: Input<typeof security.state>,
): Promise<Output<typeof security.state>> {
  const sql = pools.api;
  const clusterId = (await clusterOfSite(sql, id)) ?? fail('SITE_NOT_FOUND');
  const span = { siteId: id, clusterId: null, hours };
  const [nodes, topIps, topPaths] = await Promise.all([
    nodeLevels(sql, { id, clusterId }),
    heaviest(sql, 'address', span),
    heaviest(sql, 'path', span),
  ]);
  return {
    nodes: nodes.map(({ paths, level, reportedAt, ...node }) => ({
      ...node,
      level: LEVELS[level]!,
      escalatedPaths: paths.map((escalated) => ({ path: escalated.path, level: LEVELS[escalated.level]! })),
      reportedAt: reportedAt?.toISOString() ?? null,
    })),
    topIps,
    topPaths,
    hours,
  };
}

/** Newest first. Throws SITE_NOT_FOUND. */
export async function listSecurityEvents(
  { pools }: Runtime,
  input: Input<typeof security.events>,
): Promise<Output<typeof security.events>> {
  const { id, kind } = input;
  if (!(await clusterOfSite(pools.api, id))) fail('SITE_NOT_FOUND');
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([
    eventPage(pools.api, id, kind, limit, offset),
    eventCount(pools.api, id, kind),
  ]);
  return { items: rows.map(presentEvent), total };
}

function presentEvent({ nodeId, nodeName, occurredAt, level, previousLevel, ...event }: EventRow): Event {
  return {
    ...event,
    node: nodeId === null ? null : { id: nodeId, name: nodeName! },
    occurredAt: occurredAt.toISOString(),
    level: LEVELS[level]!,
    previousLevel: LEVELS[previousLevel]!,
  };
}

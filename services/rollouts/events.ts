import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { NAMED_SITES } from '../../contract/resources/revisions.ts';
import { CANARY_NODES, type rollout } from '../../contract/resources/rollout.ts';
import { Cluster } from '../../models/clusters/cluster.ts';
import { subjectsOf } from '../../models/config/revision-subject.ts';
import { Node } from '../../models/nodes/node.ts';
import {
  type RolloutEventRow,
  rolloutEventById,
  rolloutEventPage,
  triedRevisions,
} from '../../models/rollouts/rollout-event.ts';
import { siteLabels } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { presentFinding } from './present-finding.ts';

type Event = Output<typeof rollout.rolloutEvents>['items'][number];

/** Throws CLUSTER_NOT_FOUND. */
export async function listRolloutEvents(
  { pools }: Runtime,
  { id, ...page }: Input<typeof rollout.rolloutEvents>,
): Promise<Output<typeof rollout.rolloutEvents>> {
  if (!(await Cluster.byId(pools.api, id))) return fail('CLUSTER_NOT_FOUND');
  const { limit, offset } = pageOf(page);
  const { rows, total } = await rolloutEventPage(pools.api, id, limit, offset);
  return { items: rows.map(present), total };
}

/** Throws CLUSTER_NOT_FOUND and ROLLOUT_EVENT_NOT_FOUND. */
export async function getRolloutEvent(
  { pools }: Runtime,
  { id, eventId }: Input<typeof rollout.rolloutEvent>,
): Promise<Output<typeof rollout.rolloutEvent>> {
  const sql = pools.api;
  if (!(await Cluster.byId(sql, id))) return fail('CLUSTER_NOT_FOUND');
  const row = (await rolloutEventById(sql, id, eventId)) ?? fail('ROLLOUT_EVENT_NOT_FOUND');
  const event = present(row);
  const tried = await triedRevisions(sql, row);
  const subjects = await subjectsOf(sql, tried);
  const nodeIds = (event.finding?.nodeIds ?? []).slice(0, CANARY_NODES);
  const names = new Map((await Node.query(sql).findByIds(nodeIds)).map((node) => [node.id, node.name]));
  return {
    ...event,
    clusterName: row.clusterName,
    sites: await siteLabels(sql, row.sites.slice(0, NAMED_SITES)),
    nodes: nodeIds.map((nodeId) => ({ id: nodeId, name: names.get(nodeId) ?? null })),
    changes: tried.map(({ number, reason, params, actor, createdAt }, index) => ({
      revision: number,
      reasonCode: reason,
      reasonParams: params,
      actor,
      subject: subjects[index] ?? null,
      createdAt: createdAt.toISOString(),
    })),
  };
}

function present({ at, finding, clusterName: _name, sites: _sites, ...row }: RolloutEventRow): Event {
  return { ...row, at: at.toISOString(), finding: presentFinding(finding) };
}

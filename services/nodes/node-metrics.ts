import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { METRICS_POINTS, type nodes } from '../../contract/resources/nodes.ts';
import { Node } from '../../models/nodes/node.ts';
import { metricsHistory, POINT_SECONDS } from '../../models/nodes/node-metrics.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const STEP_MS = POINT_SECONDS * 1000;

/** The last 24 hours of a node's machine; a point without a report is null. Throws NODE_NOT_FOUND. */
export async function nodeMetrics(
  { pools }: Runtime,
  { id }: Input<typeof nodes.metrics>,
  now = Date.now(),
): Promise<Output<typeof nodes.metrics>> {
  if (!(await Node.query(pools.api).findById(id).select('id'))) fail('NODE_NOT_FOUND');
  const from = (Math.floor(now / STEP_MS) - METRICS_POINTS + 1) * STEP_MS;
  const held = await metricsHistory(pools.api, id, new Date(from));
  return {
    from: new Date(from).toISOString(),
    stepSeconds: POINT_SECONDS,
    points: Array.from({ length: METRICS_POINTS }, (_, index) => held.get(from + index * STEP_MS) ?? null),
  };
}

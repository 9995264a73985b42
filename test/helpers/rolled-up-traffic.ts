// Statistics that tests read at once, which a job would sum within two minutes.
import { takeAllTrafficMarks } from '../../models/traffic/traffic-mark.ts';
import { sumTraffic } from '../../services/analytics/roll-up.ts';
import { rollUpUsage } from '../../services/usage/roll-up.ts';
import type { TestConsole } from './console.ts';

/** Sums what nodes have reported until now. */
export async function rollUpTraffic({ running: { runtime } }: TestConsole): Promise<void> {
  await rollUpUsage(runtime);
  await takeAllTrafficMarks(runtime.pools.api);
  await sumTraffic(runtime);
}

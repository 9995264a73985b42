// Stored rules that an earlier version of the console compiled are compiled by this one: what does not compile any more
// keeps its last form at the nodes, and needs somebody.
import { recompileRuleSet, staleRuleSets } from '../../models/rules/rule-set.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

/** In one run; the rest waits for the next. */
const MOST = 200;

export async function recompileStored(runtime: Runtime, signal: AbortSignal): Promise<void> {
  for (const id of await staleRuleSets(runtime.pools.api, MOST)) {
    if (signal.aborted) return;
    await write(runtime, systemCall('rules'), {}, (tx) => recompileRuleSet(tx.sql, id));
  }
}

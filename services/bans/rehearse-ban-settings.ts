import type { Input, Output } from '../../contract/procedure.ts';
import type { banSettings } from '../../contract/resources/bans.ts';
import { readBanSettings } from '../../models/bans/ban-setting.ts';
import { automaticBans, type BanHistory, manualBanHistory } from '../../models/security/rehearsal.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Rehearsal = Output<typeof banSettings.rehearse>;

const HOUR_MS = 3_600_000;

/** What another limit, or not sharing, would have done in the last hour; bans are all known to the console. */
export async function rehearseBanSettings(
  { pools }: Runtime,
  input: Input<typeof banSettings.rehearse>,
): Promise<Rehearsal> {
  const sql = pools.api;
  const before = await readBanSettings(sql);
  const after = { ...before, ...input };
  const answers: Rehearsal['answers'] = [];
  if (after.maxTotal !== before.maxTotal) {
    const count = refusedBy(after.maxTotal, await manualBanHistory(sql));
    answers.push({ question: 'bans_refused', count, were: null, lacks: null });
  }
  if (after.shareAutoBans !== before.shareAutoBans) {
    const { made, unshared } = await automaticBans(sql);
    answers.push({ question: 'bans_unshared', count: after.shareAutoBans ? 0 : made, were: unshared, lacks: null });
  }
  const now = Date.now();
  return { from: new Date(now - HOUR_MS).toISOString(), until: new Date(now).toISOString(), answers };
}

/** How many bans of the hour the limit had refused; those make room for nobody when they would have ended. */
export function refusedBy(maxTotal: number, { before, steps }: BanHistory): number {
  const refused = new Set<string>();
  let active = before;
  for (const { id, ends } of steps) {
    if (ends) active -= refused.has(id) ? 0 : 1;
    else if (active >= maxTotal) refused.add(id);
    else active++;
  }
  return refused.size;
}

// The pasted list of this browser tab: there is one, and it outlives its dialog, so that a look elsewhere stops nothing.
import { bans } from '@contract/resources/bans.ts';
import { reactive, ref } from 'vue';
import { call } from '@/shared/api/call.ts';
import { asCallError, type CallError } from '@/shared/api/call-error.ts';
import { PAUSE } from '@/shared/bulk/pause.ts';
import { type BulkRun, runBulk } from '@/shared/bulk/run-bulk.ts';
import { banOf, type Terms, termsFor } from './terms.ts';

export const bulk = reactive<BulkRun<CallError>>({ rows: [], running: false, stopped: '' });
/** The same for all rows. */
export const bulkTerms = ref<Terms>(termsFor(''));

/** Bans what is left of the list. */
export async function goOn(subject: string): Promise<void> {
  const ban = (cidr: string) =>
    call(bans.create, banOf(bulkTerms.value, cidr)!, { subject }).then(() => null, asCallError);
  await runBulk(bulk, ban, { pause: PAUSE, limit: 'BAN_PLATFORM_LIMIT' });
}

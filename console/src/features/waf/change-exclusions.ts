// One exclusion more or less, whatever else of the settings was saved meanwhile.
import { siteWaf, type WafExclusion } from '@contract/resources/site-waf.ts';
import { call } from '@/shared/api/call.ts';
import { sendOnTop } from '@/shared/forms/send-on-top.ts';

/** Saves what `change` makes of the exclusions that the site has, and answers them. Throws CallError. */
export async function changeExclusions(
  site: { id: string; name: string },
  change: (all: readonly WafExclusion[]) => WafExclusion[],
): Promise<readonly WafExclusion[]> {
  const read = () => call(siteWaf.get, { id: site.id });
  let now = await read();
  const saved = await sendOnTop(
    () =>
      call(
        siteWaf.update,
        { id: site.id, exclusions: change(now.exclusions), expectedUpdatedAt: now.updatedAt },
        { subject: site.name },
      ),
    async () => {
      now = await read();
      return [];
    },
  );
  return saved.exclusions;
}

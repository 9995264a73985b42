// One exclusion or pack more or less, whatever else of the settings was saved meanwhile.
import type { Input, Output } from '@contract/procedure.ts';
import { siteWaf, type WafExclusion } from '@contract/resources/site-waf.ts';
import { call } from '@/shared/api/call.ts';
import { sendOnTop } from '@/shared/forms/send-on-top.ts';

interface Site {
  id: string;
  name: string;
}

/** Saves what `change` makes of the settings that the site has, and answers them. Throws CallError. */
export async function changeWaf(
  site: Site,
  change: (now: Output<typeof siteWaf.get>) => Omit<Input<typeof siteWaf.update>, 'id' | 'expectedUpdatedAt'>,
): Promise<Output<typeof siteWaf.update>> {
  const read = () => call(siteWaf.get, { id: site.id });
  let now = await read();
  return sendOnTop(
    () =>
      call(siteWaf.update, { id: site.id, ...change(now), expectedUpdatedAt: now.updatedAt }, { subject: site.name }),
    async () => {
      now = await read();
      return [];
    },
  );
}

/** Saves what `change` makes of the exclusions that the site has, and answers them. Throws CallError. */
export async function changeExclusions(
  site: Site,
  change: (all: readonly WafExclusion[]) => WafExclusion[],
): Promise<readonly WafExclusion[]> {
  const saved = await changeWaf(site, ({ exclusions }) => ({ exclusions: change(exclusions) }));
  return saved.exclusions;
}

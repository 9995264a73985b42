import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { DnsProtection, dns, dnsProtection } from '../../contract/resources/dns.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { dnsBindingPage } from '../../models/dns/binding.ts';
import {
  DEFAULT_MASS_REMOVAL_RATIO,
  DNS_PROTECTION,
  readDnsProtection,
  writeDnsProtection,
} from '../../models/dns/protection-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

export async function getDnsProtection({ pools }: Runtime): Promise<DnsProtection> {
  return readDnsProtection(pools.api);
}

/** Throws UPDATED_AT_MISMATCH. */
export async function setDnsProtection(
  runtime: Runtime,
  { massRemovalRatio = DEFAULT_MASS_REMOVAL_RATIO, expectedUpdatedAt }: Input<typeof dnsProtection.set>,
  call: Call,
): Promise<DnsProtection> {
  return write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, DNS_PROTECTION);
    const { updatedAt } = await readDnsProtection(tx.sql);
    const before = updatedAt === null ? null : new Date(updatedAt);
    assertUpdatedAt(expectedUpdatedAt, before);
    const settings = { massRemovalRatio, updatedAt: nextUpdatedAt(before, tx.now).toISOString() };
    await writeDnsProtection(tx.sql, settings, tx.now);
    await recordAudit(tx, 'dns.protection_update', settingTarget(DNS_PROTECTION), { massRemovalRatio });
    return settings;
  });
}

export async function listDnsBindings(
  { pools }: Runtime,
  input: Input<typeof dns.bindings>,
): Promise<Output<typeof dns.bindings>> {
  const { limit, offset } = pageOf(input);
  const { rows, total } = await dnsBindingPage(pools.api, input.search, limit, offset);
  const text = (number: number | null) => (number === null || number === 0 ? null : String(number));
  return {
    items: rows.map((row) => ({
      ...row,
      revision: text(row.revision),
      applied: text(row.applied),
      blocked: text(row.blocked),
    })),
    total,
  };
}

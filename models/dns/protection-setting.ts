// Mass-removal protection of DNS: one setting, and its default without one.
import type { Knex } from 'knex';
import type { DnsProtection } from '../../contract/resources/dns.ts';
import { readSetting, writeSetting } from '../db/setting.ts';

export const DNS_PROTECTION = 'dns_protection';
export const DEFAULT_MASS_REMOVAL_RATIO = 0.5;

export async function readDnsProtection(sql: Knex): Promise<DnsProtection> {
  const stored = await readSetting<DnsProtection>(sql, DNS_PROTECTION);
  return { massRemovalRatio: DEFAULT_MASS_REMOVAL_RATIO, updatedAt: null, ...stored };
}

export async function writeDnsProtection(sql: Knex, settings: DnsProtection, now: Date): Promise<void> {
  await writeSetting(sql, DNS_PROTECTION, settings, now);
}

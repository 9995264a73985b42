import type { AlertKindEntries } from '../alert-kind.ts';
import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  DNS_PROVIDER_NOT_FOUND: entry(404, 'This DNS provider access does not exist.'),
  DNS_PROVIDER_IN_USE: entry(
    409,
    'The DNS provider access is in use: by the clusters `data.clusters`, by the certificates `data.certificates`, or by ' +
      'records that are still to be removed.',
  ),
  DNS_PROVIDER_AUTH_FAILED: entry(400, 'The DNS provider rejected the credentials, or they may not do this.'),
  DNS_PROVIDER_ZONE_NOT_FOUND: entry(
    400,
    'The DNS provider does not have the zone, or hides it from these credentials.',
  ),
  DNS_PROVIDER_UNREACHABLE: entry(502, 'The DNS provider could not be reached, or did not answer in time.'),
  DNS_PROVIDER_RATE_LIMITED: entry(429, 'The DNS provider accepts no more requests now. Try again later.'),
  DNS_PROVIDER_FAILED: entry(502, 'The DNS provider answered with an error.'),
  DNS_ADDRESS_REFUSED: entry(
    400,
    'The DNS server has an address that the console may not call. Add it to SVC_OUTBOUND_ALLOW_CIDRS if it is yours.',
  ),
  DNS_ZONES_UNSUPPORTED: entry(400, 'The DNS provider cannot list zones. Enter the zone by hand.'),
  DNS_ZONE_MISMATCH: entry(400, '`domain` is not inside the zone of the DNS provider access.'),
  DNS_LINE_UNSUPPORTED: entry(400, 'The DNS provider does not support the resolution line `data.line`.'),
  DNS_POLICY_INVALID: entry(400, 'The DNS lines contradict each other: `data.line`, `data.fault`.'),
  DNS_BINDING_CONFLICT: entry(
    409,
    'Another cluster writes the name `data.name` in the same zone. Choose another domain or line name.',
  ),
  DNS_BINDING_IN_USE: entry(
    409,
    'The DNS of the cluster uses this or still has records. Change the lines, or switch DNS off and wait until its ' +
      'records are removed.',
  ),
  DNS_RECORD_CONFLICT: entry(
    409,
    'The zone has records named `data.name` that the console did not write. It does not change them. Remove them, or ' +
      'choose another name.',
  ),
  DNS_REVISION_NOT_FOUND: entry(404, 'This DNS revision does not exist.'),
  DNS_NOT_BLOCKED: entry(409, 'This DNS revision is not blocked, or not any more.'),
  DNS_RECONCILE_BUSY: entry(409, 'Another run on this cluster did not end in time. Try again later.'),
  NODE_ADDRESS_INVALID: entry(
    400,
    'The address `data.address` cannot be a node address: it is not a single unicast address, or is there twice.',
  ),
} satisfies ErrorEntries;

export const attention = {
  dns_failed: { order: 0, level: 'act', page: '/dns' },
  dns_blocked: { order: 0, level: 'act', page: '/dns' },
  nodes_no_address: { order: 0, level: 'watch', page: '/nodes' },
} satisfies AttentionEntries;

export const alerts = {
  dns_failed: {
    order: 112,
    audience: 'everything',
    text: {
      en: { firing: 'DNS records of {name} cannot be written.', resolved: 'DNS records of {name} are written again.' },
      'zh-CN': { firing: '集群 {name} 的 DNS 记录无法写入。', resolved: '集群 {name} 的 DNS 记录已恢复写入。' },
    },
  },
  dns_mass_removal_blocked: {
    order: 114,
    audience: 'everything',
    text: {
      en: {
        firing: 'A DNS change of {name} would remove too many addresses and is blocked.',
        resolved: 'No DNS change of {name} is blocked any more.',
      },
      'zh-CN': {
        firing: '集群 {name} 的一次 DNS 更改会移除过多地址，已被拦截。',
        resolved: '集群 {name} 不再有被拦截的 DNS 更改。',
      },
    },
  },
} satisfies AlertKindEntries;

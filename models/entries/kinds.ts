// All kinds of entries, one line each.
import { clientIpKind } from './client-ip.ts';
import { ipListChunkKind, ipListKind } from './ip-list.ts';
import type { EntryKind } from './kind.ts';
import { originPolicyKind } from './origin-policy.ts';
import { siteKind } from './site.ts';
import { unknownHostsKind } from './unknown-hosts.ts';

export const ENTRY_KINDS: readonly EntryKind[] = [
  siteKind,
  clientIpKind,
  unknownHostsKind,
  originPolicyKind,
  ipListKind,
  ipListChunkKind,
];

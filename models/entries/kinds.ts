// All kinds of entries, one line each.
import { ccTemplateKind } from './cc-template.ts';
import { challengeKeysKind } from './challenge-keys.ts';
import { clientIpKind } from './client-ip.ts';
import { ipListChunkKind, ipListKind } from './ip-list.ts';
import type { EntryKind } from './kind.ts';
import { originPolicyKind } from './origin-policy.ts';
import { platformProtectionKind } from './platform-protection.ts';
import { protectionKind } from './protection.ts';
import { siteKind } from './site.ts';
import { unknownHostsKind } from './unknown-hosts.ts';

export const ENTRY_KINDS: readonly EntryKind[] = [
  siteKind,
  protectionKind,
  platformProtectionKind,
  ccTemplateKind,
  challengeKeysKind,
  clientIpKind,
  unknownHostsKind,
  originPolicyKind,
  ipListKind,
  ipListChunkKind,
];

// Written by `npm run generate` from the files it imports. Changes here are lost.
import { bulkRedirectsKind } from '../entries/bulk-redirects.ts';
import { ccTemplateKind } from '../entries/cc-template.ts';
import { challengeKeysKind } from '../entries/challenge-keys.ts';
import { clientIpKind } from '../entries/client-ip.ts';
import { ipListKind } from '../entries/ip-list.ts';
import { ipListChunkKind } from '../entries/ip-list.ts';
import { listenPortsKind } from '../entries/listen-ports.ts';
import { originPolicyKind } from '../entries/origin-policy.ts';
import { platformProtectionKind } from '../entries/platform-protection.ts';
import { platformRulesKind } from '../entries/platform-rules.ts';
import { protectionKind } from '../entries/protection.ts';
import { siteCompressionKind } from '../entries/site-compression.ts';
import { siteHttpsKind } from '../entries/site-https.ts';
import { siteRulesKind } from '../entries/site-rules.ts';
import { siteWafKind } from '../entries/site-waf.ts';
import { siteKind } from '../entries/site.ts';
import { unknownHostsKind } from '../entries/unknown-hosts.ts';

export const FOUND_KINDS = [
  bulkRedirectsKind,
  ccTemplateKind,
  challengeKeysKind,
  clientIpKind,
  ipListKind,
  ipListChunkKind,
  listenPortsKind,
  originPolicyKind,
  platformProtectionKind,
  platformRulesKind,
  protectionKind,
  siteCompressionKind,
  siteHttpsKind,
  siteRulesKind,
  siteWafKind,
  siteKind,
  unknownHostsKind,
] as const;

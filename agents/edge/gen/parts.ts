// Written by `npm run generate` from the files it imports. Changes here are lost.
import { acmePart } from '../acme/acme.part.ts';
import { bansPart } from '../bans/bans.part.ts';
import { certificatesPart } from '../certificates/certificates.part.ts';
import { configPart } from '../config/config.part.ts';
import { sessionTicketKeysPart } from '../keys/session-ticket-keys.part.ts';
import { logTailPart } from '../logs/log-tail.part.ts';
import { logsPart } from '../logs/logs.part.ts';
import { allowListPart } from '../nft/allow-list.part.ts';
import { kernelBansPart } from '../nft/kernel-bans.part.ts';
import { originPolicyPart } from '../origin-test/origin-policy.part.ts';
import { prefetchPart } from '../prefetch/prefetch.part.ts';
import { purgeMethodPart } from '../purge-method/purge-method.part.ts';
import { purgesPart } from '../purges/purges.part.ts';
import { appliedPart } from '../run/applied.part.ts';
import { cacheUsagePart } from '../run/cache-usage.part.ts';
import { capabilitiesPart } from '../run/capabilities.part.ts';
import { clockPart } from '../run/clock.part.ts';
import { failingSitesPart } from '../run/failing-sites.part.ts';
import { originHealthPart } from '../run/origin-health.part.ts';
import { vitalsPart } from '../run/vitals.part.ts';
import { protectionPart } from '../security/protection.part.ts';
import { statisticsPart } from '../stats/statistics.part.ts';
import { tasksPart } from '../tasks/tasks.part.ts';

export const PARTS = [
  acmePart,
  bansPart,
  certificatesPart,
  configPart,
  sessionTicketKeysPart,
  logTailPart,
  logsPart,
  allowListPart,
  kernelBansPart,
  originPolicyPart,
  prefetchPart,
  purgeMethodPart,
  purgesPart,
  appliedPart,
  cacheUsagePart,
  capabilitiesPart,
  clockPart,
  failingSitesPart,
  originHealthPart,
  vitalsPart,
  protectionPart,
  statisticsPart,
  tasksPart,
] as const;

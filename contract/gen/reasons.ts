// Written by `npm run generate` from the files it imports. Changes here are lost.
import { reasons as cacheZone } from '../resources/cache-zone.codes.ts';
import { reasons as certificates } from '../resources/certificates.codes.ts';
import { reasons as clientIp } from '../resources/client-ip.codes.ts';
import { reasons as clusters } from '../resources/clusters.codes.ts';
import { reasons as errorPages } from '../resources/error-pages.codes.ts';
import { reasons as headerLimit } from '../resources/header-limit.codes.ts';
import { reasons as ipLists } from '../resources/ip-lists.codes.ts';
import { reasons as listenPorts } from '../resources/listen-ports.codes.ts';
import { reasons as originAllowList } from '../resources/origin-allow-list.codes.ts';
import { reasons as protectionSettings } from '../resources/protection-settings.codes.ts';
import { reasons as protection } from '../resources/protection.codes.ts';
import { reasons as revisions } from '../resources/revisions.codes.ts';
import { reasons as siteLogs } from '../resources/site-logs.codes.ts';
import { reasons as siteWaf } from '../resources/site-waf.codes.ts';
import { reasons as sites } from '../resources/sites.codes.ts';
import { reasons as unknownHosts } from '../resources/unknown-hosts.codes.ts';

export const REASON_LISTS = [
  cacheZone,
  certificates,
  clientIp,
  clusters,
  errorPages,
  headerLimit,
  ipLists,
  listenPorts,
  originAllowList,
  protectionSettings,
  protection,
  revisions,
  siteLogs,
  siteWaf,
  sites,
  unknownHosts,
] as const;

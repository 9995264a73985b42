// Written by `npm run generate` from the files it imports. Changes here are lost.
import { siteFeatures as clientIp } from '../resources/client-ip.codes.ts';
import { siteFeatures as listenPorts } from '../resources/listen-ports.codes.ts';
import { siteFeatures as rules } from '../resources/rules.codes.ts';
import { siteFeatures as siteCache } from '../resources/site-cache.codes.ts';
import { siteFeatures as siteHttps } from '../resources/site-https.codes.ts';
import { siteFeatures as siteLogs } from '../resources/site-logs.codes.ts';
import { siteFeatures as siteWaf } from '../resources/site-waf.codes.ts';
import { siteFeatures as sites } from '../resources/sites.codes.ts';

export const SITE_FEATURE_LISTS = [
  clientIp,
  listenPorts,
  rules,
  siteCache,
  siteHttps,
  siteLogs,
  siteWaf,
  sites,
] as const;

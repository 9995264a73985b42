// Written by `npm run generate` from the files it imports. Changes here are lost.
import { alerts as backups } from '../resources/backups.codes.ts';
import { alerts as certificates } from '../resources/certificates.codes.ts';
import { alerts as dns } from '../resources/dns.codes.ts';
import { alerts as nodes } from '../resources/nodes.codes.ts';
import { alerts as rollout } from '../resources/rollout.codes.ts';
import { alerts as rules } from '../resources/rules.codes.ts';
import { alerts as security } from '../resources/security.codes.ts';
import { alerts as siteWaf } from '../resources/site-waf.codes.ts';
import { alerts as sites } from '../resources/sites.codes.ts';

export const ALERT_LISTS = [
  backups,
  certificates,
  dns,
  nodes,
  rollout,
  rules,
  security,
  siteWaf,
  sites,
] as const;

// Written by `npm run generate` from the files it imports. Changes here are lost.
import { attention as clusters } from '../resources/clusters.codes.ts';
import { attention as dns } from '../resources/dns.codes.ts';
import { attention as nodeChannelSettings } from '../resources/node-channel-settings.codes.ts';
import { attention as nodes } from '../resources/nodes.codes.ts';
import { attention as protectionSettings } from '../resources/protection-settings.codes.ts';
import { attention as protection } from '../resources/protection.codes.ts';
import { attention as revisions } from '../resources/revisions.codes.ts';
import { attention as rollout } from '../resources/rollout.codes.ts';
import { attention as rules } from '../resources/rules.codes.ts';
import { attention as security } from '../resources/security.codes.ts';
import { attention as sessionTicketKeys } from '../resources/session-ticket-keys.codes.ts';
import { attention as siteWaf } from '../resources/site-waf.codes.ts';
import { attention as sites } from '../resources/sites.codes.ts';

export const ATTENTION_LISTS = [
  clusters,
  dns,
  nodeChannelSettings,
  nodes,
  protectionSettings,
  protection,
  revisions,
  rollout,
  rules,
  security,
  sessionTicketKeys,
  siteWaf,
  sites,
] as const;

// Written by `npm run generate` from the files it imports. Changes here are lost.
import { errors as accessKeysErrors } from '../../contract/resources/access-keys.codes.ts';
import { errors as accountErrors } from '../../contract/resources/account.codes.ts';
import { errors as bansErrors } from '../../contract/resources/bans.codes.ts';
import { errors as changesErrors } from '../../contract/resources/changes.codes.ts';
import { errors as clustersErrors } from '../../contract/resources/clusters.codes.ts';
import { errors as enrollmentTokensErrors } from '../../contract/resources/enrollment-tokens.codes.ts';
import { errors as ipListsErrors } from '../../contract/resources/ip-lists.codes.ts';
import { errors as liveErrors } from '../../contract/resources/live.codes.ts';
import { errors as nodeGroupsErrors } from '../../contract/resources/node-groups.codes.ts';
import { errors as nodesErrors } from '../../contract/resources/nodes.codes.ts';
import { errors as protectionErrors } from '../../contract/resources/protection.codes.ts';
import { errors as regionsErrors } from '../../contract/resources/regions.codes.ts';
import { errors as revisionsErrors } from '../../contract/resources/revisions.codes.ts';
import { errors as serviceAccountsErrors } from '../../contract/resources/service-accounts.codes.ts';
import { errors as sitesErrors } from '../../contract/resources/sites.codes.ts';
import { errors as systemErrors } from '../../contract/resources/system.codes.ts';
import { errors as unknownHostsErrors } from '../../contract/resources/unknown-hosts.codes.ts';

export const ERROR_LISTS = [
  accessKeysErrors,
  accountErrors,
  bansErrors,
  changesErrors,
  clustersErrors,
  enrollmentTokensErrors,
  ipListsErrors,
  liveErrors,
  nodeGroupsErrors,
  nodesErrors,
  protectionErrors,
  regionsErrors,
  revisionsErrors,
  serviceAccountsErrors,
  sitesErrors,
  systemErrors,
  unknownHostsErrors,
] as const;

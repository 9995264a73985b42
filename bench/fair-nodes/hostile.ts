// Thread of the hostile node: it begins with the identity it gets, and ends with its thread.
import { workerData } from 'node:worker_threads';
import { Connection, type Identity } from '../fleet/connection.ts';
import { doItsWorst } from '../fleet/hostile-node.ts';

export interface Hostile {
  serverUrl: string;
  identity: Identity;
  siteId: string;
}

const { serverUrl, identity, siteId } = workerData as Hostile;
await doItsWorst(() => new Connection(serverUrl, identity.authorityPem, identity), siteId, new AbortController().signal)
  .done;

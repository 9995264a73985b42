// Answers are made ready where the authority looks for them, and it is asked only when they are there.
import { createPrivateKey } from 'node:crypto';
import { accountSecretPlace } from '../../../../models/certificates/acme-account.ts';
import { holdLease, type StoredPlace, saveOrder } from '../../../../models/certificates/acme-order.ts';
import { type AcmeAnswer, nodesBehind, putTokens } from '../../../../models/certificates/acme-token.ts';
import { systemCall } from '../../../../runtime/call.ts';
import { write } from '../../../../runtime/write.ts';
import { OrderFailed } from '../failure.ts';
import { thumbprint } from '../protocol/jws.ts';
import { allServed } from '../served.ts';
import type { Next, StepContext } from '../step.ts';

/** Nodes that are online have an answer within this time, or the order ends. */
const APPLY_MS = 40_000;
const LOOK_MS = 500;
const NODES_TOLD = 20;

/** What shows that the account asks: the token with the fingerprint of its key. */
export async function keyAuthorizations({ runtime, order, open }: StepContext): Promise<Map<string, string>> {
  const { account } = await open();
  const place = accountSecretPlace('private_key', account.id);
  const key = createPrivateKey({ key: runtime.sealer.open(account.privateKey, place), format: 'der', type: 'pkcs8' });
  const print = thumbprint(key);
  const unproven = order.authorizations.filter(({ state }) => state === 'waiting' || state === 'asked');
  return new Map(unproven.map(({ token }) => [token, `${token}.${print}`]));
}

export async function presentHttp(context: StepContext): Promise<Next> {
  const { runtime, order } = context;
  const authorized = await keyAuthorizations(context);
  const shown = order.authorizations.filter(({ token }) => authorized.has(token));
  const served = await allServed(
    runtime,
    shown.map(({ name }) => name),
  );
  const clusters = Map.groupBy(served, ({ clusterId }) => clusterId);
  // Where something was shown before, it goes when the order is over.
  const places: Record<string, StoredPlace> = { ...order.places };
  await write(runtime, systemCall('acme'), {}, async (tx) => {
    await holdLease(tx.sql, order);
    for (const clusterId of [...clusters.keys()].sort()) {
      const names = new Set(clusters.get(clusterId)!.map(({ name }) => name));
      const answers = shown.flatMap(({ name, token }): AcmeAnswer[] =>
        names.has(name) ? [{ host: name, token, keyAuthorization: authorized.get(token)! }] : [],
      );
      const place = (await putTokens(tx, [clusterId], answers)).get(clusterId);
      if (place) places[clusterId] = { epoch: String(place.epoch), sequence: String(place.sequence) };
    }
    await saveOrder(tx.sql, order, { state: 'propagate', places, stepAt: tx.now, nextAt: tx.now, tries: 0 });
  });
  Object.assign(order, { places, stepAt: new Date() });
  return { to: 'propagate', saved: true };
}

export async function propagateHttp({ runtime, order, now }: StepContext): Promise<Next> {
  const missing: string[] = [];
  for (const [clusterId, { epoch, sequence }] of Object.entries(order.places)) {
    const place = { epoch: BigInt(epoch), sequence: BigInt(sequence) };
    const { reached, behind, unable } = await nodesBehind(runtime.pools.api, clusterId, place);
    missing.push(...[...behind, ...unable].map(({ name }) => name));
    if (reached + behind.length + unable.length === 0) throw new OrderFailed('http01_no_nodes');
  }
  if (missing.length === 0) return { to: 'validate' };
  if (now.getTime() - order.stepAt.getTime() > APPLY_MS) {
    throw new OrderFailed('http01_apply_timeout', { nodes: missing.slice(0, NODES_TOLD) });
  }
  return { to: 'propagate', waitMs: LOOK_MS };
}

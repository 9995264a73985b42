// Marks of positions. What a node says it has reached it proves with the mark that came with it, so that no node can say
// that the database has forgotten something which it never had. A mark is bound to cluster, history and place. Its key
// is made once, lies sealed in the database and in backups of it, and stays the same when the master key changes.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { keepMarkKey, readMarkKey } from '../models/db/console-state.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SecretPlace } from '../runtime/sealer.ts';

const MARK_KEY_PLACE: SecretPlace = { table: 'console_state', column: 'mark_key', row: 'true' };

const KEY_BYTES = 32;
const MARK_BYTES = 16;
const HASH_BYTES = 32;

/** A place in the history of a cluster's configuration. */
export interface ConfigPlaceOf {
  epoch: bigint;
  track: number;
  revision: bigint;
  /** 32 bytes. */
  setHash: Uint8Array;
}

/** A place in another feed, as a cluster sees it. */
export interface FeedPlaceOf {
  epoch: bigint;
  sequence: bigint;
}

/** A place as a node says it; an older console gave no mark with it. */
export type Claimed<Place> = Place & { mark: Uint8Array };

export class PositionMarks {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Only of places that are committed: the mark proves for ever that they were. */
  config(clusterId: string, { epoch, track, revision, setHash }: ConfigPlaceOf): Uint8Array {
    return this.#mark(['config', clusterId, epoch, track, revision, Buffer.from(setHash).toString('hex')]);
  }

  /** As {@link config}. */
  feed(name: string, clusterId: string, { epoch, sequence }: FeedPlaceOf): Uint8Array {
    return this.#mark([name, clusterId, epoch, sequence]);
  }

  /** Whether this console has given the place to the cluster. */
  provesConfig(clusterId: string, place: Claimed<ConfigPlaceOf>): boolean {
    return place.setHash.length <= HASH_BYTES && same(place.mark, this.config(clusterId, place));
  }

  /** As {@link provesConfig}. */
  provesFeed(name: string, clusterId: string, place: Claimed<FeedPlaceOf>): boolean {
    return same(place.mark, this.feed(name, clusterId, place));
  }

  #mark(parts: readonly (string | bigint | number)[]): Uint8Array {
    const text = JSON.stringify(['svc/mark/v1', ...parts.map(String)]);
    return createHmac('sha256', this.#key).update(text).digest().subarray(0, MARK_BYTES);
  }
}

const loaded = new WeakMap<Runtime, Promise<PositionMarks>>();

/**
 * The marks of the console's database; the key is made where there is none. Throws while the database is away, and when
 * the key is sealed under another master key.
 */
export function positionMarks(runtime: Runtime): Promise<PositionMarks> {
  const known = loaded.get(runtime);
  if (known) return known;
  const loading = load(runtime);
  loaded.set(runtime, loading);
  loading.catch(() => loaded.delete(runtime));
  return loading;
}

async function load({ pools, sealer }: Runtime): Promise<PositionMarks> {
  const fresh = () => sealer.seal(randomBytes(KEY_BYTES), MARK_KEY_PLACE);
  const sealed = (await readMarkKey(pools.channel)) ?? (await keepMarkKey(pools.channel, fresh()));
  return new PositionMarks(sealer.open(sealed, MARK_KEY_PLACE));
}

function same(given: Uint8Array, expected: Uint8Array): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected);
}

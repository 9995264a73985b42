// A node as the rules of the feeds describe it, without files and sockets: a fold over messages, and what it does at a
// heartbeat. Tests let messages get lost, double, late or out of order and then compare it with the database.
import { create, fromBinary } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import { answerGetBans, readBanTarget } from '../../models/bans/ban-feed.ts';
import { headOn, readConfigHead } from '../../models/config/config-history.ts';
import { answerGetConfig } from '../../models/config/get-config.ts';
import { BUCKET_COUNT, bodyHash, bucketOf, entryHash, fromSum, moveSum } from '../../proto/entry-hash.ts';
import type { Entry } from '../../proto/gen/svc/config/v1/entry_pb.js';
import { type Ban, BanBatchSchema, GetBansRequestSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import {
  type ConfigDelta,
  ConfigDeltaSchema,
  type ConfigPosition,
  ConfigPositionSchema,
  GetConfigRequestSchema,
  type GetConfigResponse,
  Track,
} from '../../proto/gen/svc/node/v1/config_pb.js';

/** Answers that a heartbeat may need before the node is where it should be. */
const MAX_PULLS = 200;

function placeOf({ epoch, track, revision }: ConfigPosition): ModelNode['config'] {
  return { epoch, track, revision };
}

export type Outcome = 'applied' | 'ignored' | 'pull';

/** Pages collected beside the running state, swapped in when complete. */
interface Shadow {
  checkpoint: string;
  entries: Map<string, Entry>;
  token: string;
}

export class ModelNode {
  readonly clusterId: string;
  entries = new Map<string, Entry>();
  config = { epoch: 0n, track: Track.STABLE, revision: 0n };
  /** The track that the console decides on for the node. */
  asked: Track = Track.STABLE;
  readonly bans = new Map<string, Ban>();
  banPlace = { epoch: 0n, sequence: 0n };
  /** What the last heartbeat pulled: `delta`, `page`, `repair`, `bans`, `reset`. */
  pulls: string[] = [];
  #drifted = false;

  constructor(clusterId: string) {
    this.clusterId = clusterId;
  }

  receiveConfig(bytes: Uint8Array): Outcome {
    return this.#applyDelta(fromBinary(ConfigDeltaSchema, bytes));
  }

  #applyDelta(delta: ConfigDelta): Outcome {
    if (delta.epoch !== this.config.epoch) return 'pull';
    if (delta.track === this.config.track) {
      if (delta.revision <= this.config.revision) return 'ignored';
      if (delta.base > this.config.revision || delta.baseTrack !== delta.track) return 'pull';
    } else if (delta.baseTrack !== this.config.track || delta.base !== this.config.revision) return 'pull';
    if (delta.truncated) return 'pull';
    const next = new Map(this.entries);
    for (const { kind, id } of delta.deletes) next.delete(keyOf(kind, id));
    for (const entry of delta.upserts) next.set(keyOf(entry.kind, entry.id), entry);
    if (!setHash(next).equals(delta.setHash)) {
      this.#drifted = true;
      return 'pull';
    }
    this.entries = next;
    this.config = { epoch: delta.epoch, track: delta.track, revision: delta.revision };
    return 'applied';
  }

  receiveBans(bytes: Uint8Array): Outcome {
    const batch = fromBinary(BanBatchSchema, bytes);
    if (batch.epoch !== this.banPlace.epoch) return 'pull';
    if (batch.to <= this.banPlace.sequence) return 'ignored';
    if (batch.truncated || batch.from > this.banPlace.sequence) return 'pull';
    for (const id of batch.removedIds) this.bans.delete(id);
    for (const ban of batch.upserts) this.bans.set(ban.id, ban);
    this.banPlace = { epoch: batch.epoch, sequence: batch.to };
    return 'applied';
  }

  /** What a connected node does within a heartbeat: compares itself with its targets and pulls until it is there. */
  async heartbeat(pool: Pool): Promise<void> {
    this.pulls = [];
    await this.#pullConfig(pool);
    await this.#pullBans(pool);
  }

  async #pullConfig(pool: Pool): Promise<void> {
    let shadow: Shadow | null = null;
    for (let count = 0; count < MAX_PULLS; count++) {
      const head = headOn((await readConfigHead(pool, this.clusterId))!, this.asked);
      const { epoch, track, revision } = this.config;
      const same = head.epoch === epoch && head.track === track && head.revision === revision;
      if (same && this.setHash().equals(head.setHash)) {
        this.#drifted = false;
        return;
      }
      const answer: GetConfigResponse = (await answerGetConfig(
        pool,
        this.clusterId,
        this.asked,
        create(GetConfigRequestSchema, {
          base: create(ConfigPositionSchema, { ...this.config, setHash: this.setHash() }),
          pageToken: shadow?.token ?? '',
          bucketSums: this.entries.size > 0 || this.#drifted ? this.#bucketSums() : new Uint8Array(),
        }),
      ))!;
      const { result } = answer;
      this.pulls.push(result.case!);
      if (result.case === 'delta') {
        if (this.#applyDelta(result.value) === 'pull') this.#drifted = true;
      } else if (result.case === 'repair') {
        const { buckets, entries, checkpoint } = result.value;
        const replaced = new Set(buckets);
        for (const [key, { kind, id }] of this.entries) if (replaced.has(bucketOf(kind, id))) this.entries.delete(key);
        for (const entry of entries) this.entries.set(keyOf(entry.kind, entry.id), entry);
        this.config = placeOf(checkpoint!);
      } else if (result.case === 'page') {
        const { checkpoint, entries, nextPageToken } = result.value;
        const name = `${checkpoint!.epoch} ${checkpoint!.track} ${checkpoint!.revision}`;
        const current: Shadow =
          (shadow as Shadow | null)?.checkpoint === name
            ? shadow!
            : { checkpoint: name, entries: new Map(), token: '' };
        for (const entry of entries) current.entries.set(keyOf(entry.kind, entry.id), entry);
        current.token = nextPageToken;
        shadow = current;
        if (nextPageToken === '') {
          if (!setHash(current.entries).equals(checkpoint!.setHash)) throw new Error('a snapshot has another hash');
          this.entries = current.entries;
          this.config = placeOf(checkpoint!);
          shadow = null;
        }
      }
    }
    throw new Error(`the node did not reach its target: ${this.pulls.join(' ')}`);
  }

  async #pullBans(pool: Pool): Promise<void> {
    for (let count = 0; count < MAX_PULLS; count++) {
      const target = await readBanTarget(pool, this.clusterId);
      if (target.epoch === this.banPlace.epoch && target.sequence === this.banPlace.sequence) return;
      let token = '';
      do {
        const request = create(GetBansRequestSchema, { after: this.banPlace, pageToken: token, limit: 3 });
        const page = await answerGetBans(pool, this.clusterId, request);
        this.pulls.push(page.reset ? 'reset' : 'bans');
        if (page.reset) this.bans.clear();
        for (const id of page.removedIds) this.bans.delete(id);
        for (const ban of page.upserts) this.bans.set(ban.id, ban);
        token = page.nextPageToken;
        if (token === '') this.banPlace = { epoch: page.position!.epoch, sequence: page.position!.sequence };
      } while (token !== '');
    }
    throw new Error('the node did not reach the target of its bans');
  }

  /** Hash of the received set, computed from the entries. */
  setHash(): Buffer {
    return setHash(this.entries);
  }

  #bucketSums(): Uint8Array {
    const sums = new Map<number, bigint>();
    for (const { kind, id, body, features } of this.entries.values()) {
      const bucket = bucketOf(kind, id);
      sums.set(bucket, moveSum(sums.get(bucket) ?? 0n, [], [entryHash(kind, id, bodyHash(body), features)]));
    }
    const bytes = new Uint8Array(BUCKET_COUNT * 32);
    for (const [bucket, sum] of sums) bytes.set(fromSum(sum), bucket * 32);
    return bytes;
  }
}

function setHash(entries: ReadonlyMap<string, Entry>): Buffer {
  const hashes = [...entries.values()].map(({ kind, id, body, features }) =>
    entryHash(kind, id, bodyHash(body), features),
  );
  return fromSum(moveSum(0n, [], hashes));
}

function keyOf(kind: string, id: string): string {
  return `${kind}\0${id}`;
}

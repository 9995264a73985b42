// What a node has of a feed by name, across restarts: each record is a batch; a truncated one begins with everything.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type FeedBatch,
  FeedBatchSchema,
  type FeedPosition,
  FeedPositionSchema,
} from '../../../proto/gen/svc/node/v1/feeds_pb.js';
import { Journal } from '../../kit/journal.ts';
import { errorText, type Log } from '../../kit/log.ts';

const FORMAT = 'svc-feed-1';
/** A journal is written anew once it has grown by this, and to twice its size. */
const WORTHWHILE_BYTES = 1024 * 1024;

export interface FeedJournalOptions {
  path: string;
  feed: string;
  nodeId: string;
  clusterId: string;
  log: Log;
}

export class FeedJournal {
  private readonly options: FeedJournalOptions;
  private journal: Journal;
  private bodies: Uint8Array[] = [];
  private base = 0;
  /** What memory has and the file has not; "" when it has all. */
  private gap = '';
  /** Epoch 0: nothing. */
  position: FeedPosition;

  private constructor(options: FeedJournalOptions) {
    this.options = options;
    this.position = create(FeedPositionSchema, { feed: options.feed });
    const { feed, nodeId, clusterId } = options;
    this.journal = Journal.open({
      path: options.path,
      log: options.log,
      header: Buffer.from(JSON.stringify({ format: FORMAT, feed, nodeId, clusterId })),
      accept: (header) => {
        const known = readHeader(header);
        return known?.format === FORMAT && known.feed === feed && known.clusterId === clusterId;
      },
      onRecord: (payload) => this.load(payload),
    });
    this.base = this.journal.bytes;
  }

  /** Throws when the disk cannot be used. */
  static open(options: FeedJournalOptions): FeedJournal {
    return new FeedJournal(options);
  }

  /** Why not everything that was written could be read; "" when it could. */
  get damage(): string {
    return this.journal.damage;
  }

  /** What is wrong with the file; "" when all is well. */
  get problem(): string {
    return this.gap || this.journal.problem;
  }

  /** The bodies that were read, oldest first; only once. */
  take(): Uint8Array[] {
    const { bodies } = this;
    this.bodies = [];
    return bodies;
  }

  /** Forgets everything, in memory; the next rewrite does on disk. */
  forget(): void {
    this.bodies = [];
    this.position = create(FeedPositionSchema, { feed: this.options.feed });
    this.gap = 'what could not be read is not replaced yet';
  }

  /** Appends changes that follow the position and lead to `to`. On a full disk memory goes ahead of the file. */
  append(bodies: readonly Uint8Array[], to: Omit<FeedPosition, '$typeName' | '$unknown' | 'feed'>): void {
    const { feed } = this.options;
    const from = this.position.sequence;
    this.position = create(FeedPositionSchema, { feed, epoch: to.epoch, sequence: to.sequence, mark: to.mark });
    if (this.gap !== '') return;
    try {
      for (const [index, body] of bodies.entries()) {
        // Up to the last one the position is the one before: what is there twice does no harm.
        const last = index === bodies.length - 1;
        const place = { epoch: to.epoch, from, to: last ? to.sequence : from, mark: last ? to.mark : new Uint8Array() };
        this.journal.append(toBinary(FeedBatchSchema, create(FeedBatchSchema, { feed, ...place, body })));
      }
    } catch (error) {
      this.gap = `${this.options.feed} not written: ${errorText(error)}`;
      this.options.log.error('feed not written to its journal, the node goes on in memory', { feed, error });
    }
  }

  /** Whether a rewrite is due. */
  get isWorthRewriting(): boolean {
    if (this.journal.busy) return false;
    return this.gap !== '' || (this.journal.bytes > 2 * this.base && this.journal.bytes - this.base > WORTHWHILE_BYTES);
  }

  /** Writes the file anew with everything that there is at the position. */
  async rewrite(everything: readonly Uint8Array[]): Promise<void> {
    const { feed } = this.options;
    const { epoch, sequence, mark } = this.position;
    const before = this.gap;
    // What is appended from now on goes to the old file, and is carried over.
    this.gap = '';
    try {
      await this.journal.rewrite(
        async (draft) => {
          // Without a body the position has to be kept all the same.
          const bodies = everything.length > 0 ? everything : epoch > 0n ? [new Uint8Array()] : [];
          for (const [index, body] of bodies.entries()) {
            const place = { epoch, from: sequence, to: sequence, mark, truncated: index === 0 };
            draft.append(toBinary(FeedBatchSchema, create(FeedBatchSchema, { feed, ...place, body })));
          }
        },
        () => undefined,
        before !== '',
      );
      this.base = this.journal.bytes;
    } catch (error) {
      this.gap = before || `${feed} not written: ${errorText(error)}`;
      throw error;
    }
  }

  close(): Promise<void> {
    return this.journal.close();
  }

  private load(payload: Buffer): boolean {
    let batch: FeedBatch;
    try {
      batch = fromBinary(FeedBatchSchema, payload);
    } catch {
      return false;
    }
    const { feed, epoch, to, mark, body, truncated } = batch;
    if (feed !== this.options.feed) return false;
    if (truncated) this.bodies = [];
    if (!truncated || body.length > 0) this.bodies.push(body);
    this.position = create(FeedPositionSchema, { feed, epoch, sequence: to, mark });
    return true;
  }
}

function readHeader(header: Buffer): { format?: unknown; feed?: unknown; clusterId?: unknown } | undefined {
  try {
    return JSON.parse(header.toString()) as object;
  } catch {
    return undefined;
  }
}

// A node as far as answers to certificate authorities go: a real identity and Watch stream, the rules of an agent.
import { fromBinary } from '@bufbuild/protobuf';
import type { Connection, Identity } from '../../bench/fleet/connection.ts';
import { AcmeBatchSchema, type AcmePosition } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { TestConsole } from './console.ts';
import { connectAs } from './fleet.ts';

type Place = Pick<AcmePosition, 'epoch' | 'sequence'>;

export class AcmeNode {
  readonly identity: Identity;
  /** Authorizations by "host token". */
  readonly answers = new Map<string, string>();
  readonly counts = { pulls: 0, batches: 0 };
  place: Place | undefined;
  /** Whether it says what it has. */
  acknowledges = true;
  #connection: Connection | null = null;
  #pulling: Promise<void> = Promise.resolve();

  constructor(identity: Identity) {
    this.identity = identity;
  }

  get connected(): boolean {
    return this.#connection !== null;
  }

  connect(console: Pick<TestConsole, 'client' | 'nodeApiUrl'>): void {
    const connection = connectAs(console, this.identity);
    this.#connection = connection;
    connection.watch(
      { acme: this.place },
      (event) => this.#receive(event),
      () => {
        connection.destroy();
        if (this.#connection === connection) this.#connection = null;
      },
    );
  }

  disconnect(): void {
    this.#connection?.destroy();
    this.#connection = null;
  }

  async heartbeat(features: readonly string[] = ['http01-v1']): Promise<void> {
    const { target } = await this.#connection!.call('heartbeat', {
      info: { hostname: 'n', features: [...features] },
      dataPlaneHealthy: true,
      acme: this.place,
    });
    this.#aim(target?.acme);
  }

  #receive(bytes: Buffer): void {
    const { event } = fromBinary(WatchEventSchema, bytes);
    if (event.case === 'target') this.#aim(event.value.acme);
    if (event.case !== 'acmeBatch') return;
    const batch = fromBinary(AcmeBatchSchema, event.value);
    this.counts.batches += 1;
    if (this.place?.epoch === batch.epoch && batch.to <= this.place.sequence) return;
    if (this.place?.epoch !== batch.epoch || this.place.sequence !== batch.from) {
      this.#pull();
      return;
    }
    for (const { host, token } of batch.removed) this.answers.delete(`${host} ${token}`);
    for (const { host, token, keyAuthorization } of batch.upserts) {
      this.answers.set(`${host} ${token}`, keyAuthorization);
    }
    this.#reach({ epoch: batch.epoch, sequence: batch.to });
  }

  #aim(target: Place | undefined): void {
    if (!target || (target.epoch === this.place?.epoch && target.sequence === this.place.sequence)) return;
    if (target.epoch === this.place?.epoch && target.sequence < this.place.sequence) return;
    this.#pull();
  }

  #pull(): void {
    this.#pulling = this.#pulling.then(async () => {
      this.counts.pulls += 1;
      // A connection that ends takes its answer along: the next one asks again.
      const answer = await this.#connection?.call('getAcmeTokens', {}).catch(() => null);
      if (!answer?.position) return;
      this.answers.clear();
      for (const { host, token, keyAuthorization } of answer.tokens) {
        this.answers.set(`${host} ${token}`, keyAuthorization);
      }
      this.#reach(answer.position);
    });
  }

  #reach(place: Place): void {
    this.place = { epoch: place.epoch, sequence: place.sequence };
    if (this.acknowledges) void this.#connection?.call('applied', { acme: this.place }).catch(() => undefined);
  }
}

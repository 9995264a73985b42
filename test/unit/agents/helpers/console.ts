// The console's side of the node channel for tests: real TLS, real HTTP/2, real Connect, with a feed the test controls. It
// keeps entries and bans in memory and follows the contract of proto/svc/node/v1.

import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { bodyHash, bucketOf, entryHash, fromSum, moveSum } from '../../../../proto/entry-hash.ts';
import { type Entry, EntryKeySchema, EntrySchema } from '../../../../proto/gen/svc/config/v1/entry_pb.js';
import type { CertificateRef } from '../../../../proto/gen/svc/config/v1/https_pb.js';
import {
  type Ban,
  BanBatchSchema,
  BanPositionSchema,
  type GetBansRequest,
  GetBansResponseSchema,
  type OwnBanLift,
  type ReportBansRequest,
} from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import {
  AcmeBatchSchema,
  AcmePositionSchema,
  type AcmeToken,
  type CertificateMaterial,
  type GetCertificatesRequest,
  type SessionTicketKeys,
} from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import {
  ConfigDeltaSchema,
  ConfigPageSchema,
  ConfigPositionSchema,
  ConfigRepairSchema,
  type GetConfigRequest,
  GetConfigResponseSchema,
  Track,
} from '../../../../proto/gen/svc/node/v1/config_pb.js';
import {
  type AppliedRequest,
  type EnrollRequest,
  EnrollResponseSchema,
  type HeartbeatRequest,
  HeartbeatResponseSchema,
  NodeService,
  RenewCertificateResponseSchema,
  type ReportStatsRequest,
  TargetSchema,
  type WatchEvent,
  WatchEventSchema,
  type WatchRequest,
} from '../../../../proto/gen/svc/node/v1/node_pb.js';
import type { ChallengeKeys, ReportSecurityRequest } from '../../../../proto/gen/svc/node/v1/security_pb.js';
import type { Leaf, TestAuthority } from './authority.ts';

export interface TestConsoleOptions {
  authority: TestAuthority;
  /** Certificate of the server; default: a good one of the authority. */
  leaf?: Leaf;
  /** Certificates presented behind the leaf; default: the authority's. */
  chain?: string[];
  port?: number;
}

interface Revision {
  number: bigint;
  upserts: Entry[];
  deletes: { kind: string; id: string }[];
  hash: Buffer;
}

type Stream = { push(event: WatchEvent['event']): void; end(): void };

export class TestConsole {
  readonly authority: TestAuthority;
  epoch = 1_700_000_000_000n;
  banEpoch = 1_700_000_000_001n;
  pageSize = 3;
  /** The next page token is answered by the first page of a new snapshot. */
  restartPages = false;
  /** Revisions that one answer spans at most. */
  deltaReach = 1_000_000n;
  /** Called before each call is answered; may throw. */
  onCall: (method: string) => void = () => undefined;
  missingFeatures: string[] = [];
  readonly calls: string[] = [];
  readonly tokens: string[] = [];
  readonly watches: WatchRequest[] = [];
  readonly heartbeats: HeartbeatRequest[] = [];
  readonly applied: AppliedRequest[] = [];
  readonly stats: ReportStatsRequest[] = [];
  readonly configRequests: GetConfigRequest[] = [];
  readonly entries = new Map<string, Entry>();
  readonly bans = new Map<string, Ban>();
  /** Whether changes are also pushed to open streams. */
  pushing = true;
  renew = false;
  /** The cluster's keys; undefined = none yet. */
  keys: ChallengeKeys | undefined;
  ticketKeys: SessionTicketKeys | undefined;
  /** By the leaf's fingerprint in hex. */
  readonly certificates = new Map<string, CertificateMaterial>();
  readonly certificateRequests: GetCertificatesRequest[] = [];
  /** Makes certificates that are not in the table. */
  makeCertificate: (ref: CertificateRef) => CertificateMaterial | undefined = () => undefined;
  /** Certificates are answered when it resolves. */
  certificatesHeld: Promise<void> = Promise.resolve();
  acmeEpoch = 1_700_000_000_002n;
  acmeSequence = 0n;
  /** What certificate authorities are answered, by host and token. */
  readonly acmeTokens = new Map<string, AcmeToken>();
  /** How far its clock is ahead of this machine's. */
  clockAheadMs = 0;
  readonly reportedBans: ReportBansRequest[] = [];
  readonly reportedSecurity: ReportSecurityRequest[] = [];
  private readonly revisions: Revision[] = [];
  private sum = 0n;
  private readonly banChanges: { sequence: bigint; id: string }[] = [];
  private readonly streams = new Set<Stream>();
  private readonly sessions = new Set<ServerHttp2Session>();
  private server: Http2SecureServer | undefined;
  port = 0;

  private constructor(authority: TestAuthority) {
    this.authority = authority;
  }

  static async start(options: TestConsoleOptions): Promise<TestConsole> {
    const testConsole = new TestConsole(options.authority);
    await testConsole.listen(options);
    return testConsole;
  }

  get url(): string {
    return `https://localhost:${this.port}`;
  }

  get revision(): bigint {
    return BigInt(this.revisions.length);
  }

  get banSequence(): bigint {
    return BigInt(this.banChanges.length);
  }

  async listen(options: TestConsoleOptions): Promise<void> {
    const leaf = options.leaf ?? (await options.authority.serverLeaf());
    const server = createSecureServer(
      {
        key: leaf.keyPem,
        cert: [leaf.certificatePem, ...(options.chain ?? [options.authority.pem])].join('\n'),
        // With `ca` OpenSSL would complete a chain that is meant to lack the authority.
        ...(options.chain?.length === 0 ? {} : { ca: options.authority.pem }),
        requestCert: true,
        rejectUnauthorized: false,
        allowHTTP1: true,
      },
      connectNodeAdapter({ routes: (router) => this.routes(router), acceptCompression: [] }),
    );
    server.on('session', (session) => {
      this.sessions.add(session);
      session.once('close', () => this.sessions.delete(session));
    });
    this.server = server;
    await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
    this.port = (server.address() as AddressInfo).port;
  }

  /** Breaks all connections and stops listening. */
  async stop(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.server!.close(() => resolve()));
  }

  /** Breaks all connections. */
  cut(): void {
    for (const stream of this.streams) stream.end();
    this.streams.clear();
    for (const session of this.sessions) session.destroy();
  }

  /** Publishes a revision and pushes it. */
  publish(
    upserts: { kind: string; id: string; body: Uint8Array; features?: string[] }[],
    deletes: { kind: string; id: string }[] = [],
  ): void {
    const base = this.revision;
    const messages = upserts.map((entry) => create(EntrySchema, entry));
    const removed: Buffer[] = [];
    const added: Buffer[] = [];
    for (const { kind, id } of [...messages, ...deletes]) {
      const before = this.entries.get(`${kind}/${id}`);
      if (before) removed.push(hashOf(before));
      this.entries.delete(`${kind}/${id}`);
    }
    for (const entry of messages) {
      this.entries.set(`${entry.kind}/${entry.id}`, entry);
      added.push(hashOf(entry));
    }
    this.sum = moveSum(this.sum, removed, added);
    this.revisions.push({ number: base + 1n, upserts: messages, deletes, hash: fromSum(this.sum) });
    if (this.pushing) this.push({ case: 'configDelta', value: toBinary(ConfigDeltaSchema, this.deltaSince(base)) });
  }

  /** Changes bans and pushes the batch. */
  changeBans(upserts: Ban[], removedIds: string[] = [], liftedOwn: OwnBanLift[] = []): void {
    const from = this.banSequence;
    for (const id of removedIds) this.bans.delete(id);
    for (const ban of upserts) this.bans.set(ban.id, ban);
    for (const id of [...removedIds, ...upserts.map((ban) => ban.id), ...liftedOwn.map((lift) => lift.cidr)])
      this.banChanges.push({ sequence: this.banSequence + 1n, id });
    if (!this.pushing) return;
    const batch = create(BanBatchSchema, {
      epoch: this.banEpoch,
      from,
      to: this.banSequence,
      upserts,
      removedIds,
      liftedOwn,
      serverTimeMs: this.now(),
      mark: this.banMark(),
    });
    this.push({ case: 'banBatch', value: toBinary(BanBatchSchema, batch) });
  }

  /** Changes what certificate authorities are answered and pushes the batch. */
  changeAcme(upserts: AcmeToken[], removed: AcmeToken[] = []): void {
    const from = this.acmeSequence++;
    for (const { host, token } of removed) this.acmeTokens.delete(`${host}/${token}`);
    for (const token of upserts) this.acmeTokens.set(`${token.host}/${token.token}`, token);
    if (!this.pushing) return;
    const batch = create(AcmeBatchSchema, { epoch: this.acmeEpoch, from, to: this.acmeSequence, upserts, removed });
    this.push({ case: 'acmeBatch', value: toBinary(AcmeBatchSchema, batch) });
  }

  push(event: WatchEvent['event']): void {
    for (const stream of this.streams) stream.push(event);
  }

  /** Its clock, Unix ms. */
  now(): bigint {
    return BigInt(Date.now() + this.clockAheadMs);
  }

  get watchers(): number {
    return this.streams.size;
  }

  target() {
    return create(TargetSchema, {
      config: { ...this.position(), mark: new Uint8Array() },
      bans: create(BanPositionSchema, { epoch: this.banEpoch, sequence: this.banSequence }),
      serverTimeMs: this.now(),
      acme: create(AcmePositionSchema, { epoch: this.acmeEpoch, sequence: this.acmeSequence }),
    });
  }

  position() {
    return create(ConfigPositionSchema, {
      epoch: this.epoch,
      track: Track.STABLE,
      revision: this.revision,
      setHash: fromSum(this.sum),
      mark: this.configMark(),
    });
  }

  /** Stand for the marks of a real console. */
  configMark(revision = this.revision): Uint8Array {
    return Buffer.from(`config ${this.epoch} ${revision}`);
  }

  banMark(): Uint8Array {
    return Buffer.from(`bans ${this.banEpoch} ${this.banSequence}`);
  }

  /** What changed between two revisions; to the head where no end is given. */
  deltaSince(base: bigint, to = this.revision) {
    if (to < this.revision) return this.earlierDelta(base, to);
    const keys = new Map<string, { kind: string; id: string }>();
    for (const revision of this.revisions.slice(Number(base))) {
      for (const { kind, id } of [...revision.upserts, ...revision.deletes]) keys.set(`${kind}/${id}`, { kind, id });
    }
    return create(ConfigDeltaSchema, {
      epoch: this.epoch,
      track: Track.STABLE,
      base,
      revision: this.revision,
      setHash: fromSum(this.sum),
      mark: this.configMark(),
      upserts: [...keys.keys()].flatMap((key) => this.entries.get(key) ?? []),
      deletes: [...keys].flatMap(([key, name]) => (this.entries.has(key) ? [] : [create(EntryKeySchema, name)])),
    });
  }

  /** As the console answers a node that is far behind; only sound for entries that did not change again later. */
  private earlierDelta(base: bigint, to: bigint) {
    const upserts = this.revisions.slice(Number(base), Number(to)).flatMap((revision) => revision.upserts);
    const setHash = this.revisions[Number(to) - 1]!.hash;
    const mark = this.configMark(to);
    const { epoch } = this;
    return create(ConfigDeltaSchema, { epoch, track: Track.STABLE, base, revision: to, setHash, mark, upserts });
  }

  private routes(router: ConnectRouter): void {
    const called = (method: string): void => {
      this.calls.push(method);
      this.onCall(method);
    };
    router.service(NodeService, {
      enroll: async (request: EnrollRequest) => {
        called('enroll');
        this.tokens.push(request.token);
        if (request.token !== 'ewt_goodtoken1') throw new ConnectError('the token is not valid', Code.PermissionDenied);
        return create(EnrollResponseSchema, {
          nodeId: 'node-1',
          clusterId: 'cluster-1',
          nodeName: 'edge one',
          certificatePem: await this.authority.issue(request.csrPem, 'node-1'),
          caCertificatePem: this.authority.pem,
        });
      },
      renewCertificate: async (request) => {
        called('renewCertificate');
        return create(RenewCertificateResponseSchema, {
          certificatePem: await this.authority.issue(request.csrPem, 'node-1'),
          caCertificatePem: this.authority.pem,
        });
      },
      watch: (request, context) => this.watch(request, context, called),
      heartbeat: (request) => {
        called('heartbeat');
        this.heartbeats.push(request);
        return create(HeartbeatResponseSchema, {
          target: this.target(),
          intervalSeconds: 15,
          renewCertificate: this.renew,
          serverTimeMs: this.now(),
          missingFeatures: this.missingFeatures,
          challengeKeysVersion: this.keys?.version ?? 0n,
          sessionTicketKeysVersion: this.ticketKeys?.version ?? 0n,
        });
      },
      applied: (request) => {
        called('applied');
        this.applied.push(request);
        return {};
      },
      getConfig: (request) => {
        called('getConfig');
        this.configRequests.push(request);
        return this.getConfig(request);
      },
      getBans: (request) => {
        called('getBans');
        return this.getBans(request);
      },
      reportStats: (request) => {
        called('reportStats');
        this.stats.push(request);
        return { acknowledged: request.sequence };
      },
      getChallengeKeys: () => {
        called('getChallengeKeys');
        return this.keys ? { keys: this.keys } : {};
      },
      getSessionTicketKeys: () => {
        called('getSessionTicketKeys');
        return this.ticketKeys ? { keys: this.ticketKeys } : {};
      },
      getCertificates: async (request) => {
        called('getCertificates');
        this.certificateRequests.push(request);
        if (request.certificates.length > 64) throw new ConnectError('too many', Code.InvalidArgument);
        await this.certificatesHeld;
        const certificates = request.certificates.flatMap((ref) => {
          const held = this.certificates.get(Buffer.from(ref.fingerprint).toString('hex'));
          return (held?.certificateId === ref.certificateId ? held : this.makeCertificate(ref)) ?? [];
        });
        return { certificates };
      },
      getAcmeTokens: () => {
        called('getAcmeTokens');
        return {
          position: { epoch: this.acmeEpoch, sequence: this.acmeSequence },
          tokens: [...this.acmeTokens.values()],
        };
      },
      reportBans: (request) => {
        called('reportBans');
        this.reportedBans.push(request);
        return {};
      },
      reportSecurity: (request) => {
        called('reportSecurity');
        this.reportedSecurity.push(request);
        return {};
      },
    });
  }

  private async *watch(request: WatchRequest, context: HandlerContext, called: (method: string) => void) {
    called('watch');
    this.watches.push(request);
    const queue: WatchEvent['event'][] = [{ case: 'target', value: this.target() }];
    let wake: () => void = () => undefined;
    let ended = false;
    const stream: Stream = {
      push: (event) => {
        queue.push(event);
        wake();
      },
      end: () => {
        ended = true;
        wake();
      },
    };
    context.signal.addEventListener('abort', () => stream.end());
    this.streams.add(stream);
    try {
      while (!ended) {
        for (let event = queue.shift(); event; event = queue.shift()) yield create(WatchEventSchema, { event });
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (queue.length > 0) resolve();
        });
      }
    } finally {
      this.streams.delete(stream);
    }
  }

  private getConfig(request: GetConfigRequest) {
    const { base } = request;
    if (request.bucketSums.length > 0) return this.repair(Buffer.from(request.bucketSums));
    if (request.pageToken !== '') {
      const from = this.restartPages ? 0 : Number(request.pageToken);
      this.restartPages = false;
      return this.page(from);
    }
    const known = base && base.epoch === this.epoch && base.revision > 0n && base.revision <= this.revision;
    if (known && this.revisions[Number(base.revision) - 1]!.hash.equals(base.setHash)) {
      const isFar = this.revision - base.revision > this.deltaReach;
      const value = this.deltaSince(base.revision, isFar ? base.revision + this.deltaReach : this.revision);
      return create(GetConfigResponseSchema, { result: { case: 'delta', value } });
    }
    return this.page(0);
  }

  private page(from: number) {
    const entries = [...this.entries.values()].slice(from, from + this.pageSize);
    const next = from + this.pageSize < this.entries.size ? String(from + this.pageSize) : '';
    const value = create(ConfigPageSchema, { checkpoint: this.position(), entries, nextPageToken: next });
    return create(GetConfigResponseSchema, { result: { case: 'page', value } });
  }

  private repair(sums: Buffer) {
    const mine = new Map<number, bigint>();
    for (const entry of this.entries.values()) {
      const bucket = bucketOf(entry.kind, entry.id);
      mine.set(bucket, moveSum(mine.get(bucket) ?? 0n, [], [hashOf(entry)]));
    }
    const buckets: number[] = [];
    for (let bucket = 0; bucket < 4096; bucket++) {
      if (!fromSum(mine.get(bucket) ?? 0n).equals(sums.subarray(bucket * 32, bucket * 32 + 32))) buckets.push(bucket);
    }
    const value = create(ConfigRepairSchema, {
      checkpoint: this.position(),
      buckets,
      entries: [...this.entries.values()].filter((entry) => buckets.includes(bucketOf(entry.kind, entry.id))),
    });
    return create(GetConfigResponseSchema, { result: { case: 'repair', value } });
  }

  private getBans(request: GetBansRequest) {
    const { after } = request;
    const reset = after === undefined || after.epoch !== this.banEpoch || after.sequence > this.banSequence;
    const changed = reset
      ? [...this.bans.keys()]
      : [...new Set(this.banChanges.slice(Number(after.sequence)).map((change) => change.id))];
    const from = request.pageToken === '' ? 0 : Number(request.pageToken);
    const ids = changed.slice(from, from + this.pageSize);
    return create(GetBansResponseSchema, {
      position: create(BanPositionSchema, {
        epoch: this.banEpoch,
        sequence: this.banSequence,
        mark: this.banMark(),
      }),
      reset,
      upserts: ids.flatMap((id) => this.bans.get(id) ?? []),
      removedIds: ids.filter((id) => !this.bans.has(id)),
      serverTimeMs: this.now(),
      nextPageToken: from + this.pageSize < changed.length ? String(from + this.pageSize) : '',
    });
  }
}

function hashOf(entry: Entry): Buffer {
  return entryHash(entry.kind, entry.id, bodyHash(entry.body), entry.features);
}

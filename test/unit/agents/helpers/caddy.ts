// The data plane's side of the edge socket for tests: a process that can be replaced by a new one, with own bans and
// levels the test makes. Real Connect over a real unix socket. Given the folder of the journals it takes configuration over,
// and entries of HTTPS fail for want of certificates.
import { closeSync, openSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { create, fromBinary } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { parseEntry } from '../../../../agents/edge/config/entry.ts';
import { readConfigRecord } from '../../../../agents/edge/config/record.ts';
import { scanJournal } from '../../../../agents/kit/journal.ts';
import { SiteHttpsSchema } from '../../../../proto/gen/svc/config/v1/https_pb.js';
import {
  CertificateRecordSchema,
  EdgeService,
  type RestoreSecurityRequest,
  type SecurityBatch,
  SecurityBatchSchema,
  type WatchSecurityRequest,
} from '../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { type BanPosition, BanPositionSchema, type OwnBanLift } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import type { AcmeToken, SessionTicketKeys } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import {
  type ConfigPosition,
  ConfigPositionSchema,
  FailedEntrySchema,
} from '../../../../proto/gen/svc/node/v1/config_pb.js';
import type { ChallengeKeys } from '../../../../proto/gen/svc/node/v1/security_pb.js';

export type BatchContent = Partial<Pick<SecurityBatch, 'bans' | 'events' | 'sites' | 'dropped'>>;

export class TestCaddy {
  readonly socket: string;
  instanceId = 'first';
  capabilities: string[] = ['https-v1', 'http01-v1'];
  keys: ChallengeKeys | undefined;
  ticketKeys: SessionTicketKeys | undefined;
  /** What certificate authorities are answered, by host and token. */
  readonly acmeTokens = new Map<string, AcmeToken>();
  bans: BanPosition = create(BanPositionSchema);
  readonly restored: RestoreSecurityRequest[] = [];
  readonly watches: WatchSecurityRequest[] = [];
  readonly lifted: OwnBanLift[] = [];
  /** What happened, in order. */
  readonly calls: string[] = [];
  config: ConfigPosition = create(ConfigPositionSchema);
  /** What it holds, by kind and id. */
  readonly entries = new Map<string, Uint8Array>();
  /** Fingerprints in hex of the material and of the staples that it read in the pack. */
  readonly materials = new Set<string>();
  readonly staples = new Map<string, Uint8Array>();
  private readonly folder: string | undefined;
  private batches: SecurityBatch[] = [];
  private sequence = 0n;
  private wake: () => void = () => undefined;
  private server: Server | undefined;
  private readonly sockets = new Set<Socket>();

  constructor(socket: string, folder?: string) {
    this.socket = socket;
    this.folder = folder;
  }

  /** Entries of HTTPS that fail, with the reason. */
  get failed() {
    return [...this.entries].flatMap(([key, body]) => {
      const [kind, id] = key.split('/') as [string, string];
      if (kind !== 'site-https') return [];
      const lacks = fromBinary(SiteHttpsSchema, body).certificates.find(
        ({ fingerprint }) => !this.materials.has(Buffer.from(fingerprint).toString('hex')),
      );
      return lacks ? [create(FailedEntrySchema, { kind, id, reason: `there is no material of ${lacks.name}` })] : [];
    });
  }

  async start(): Promise<void> {
    if (this.folder) {
      this.readConfig();
      this.readPack();
    }
    const server = createServer(
      connectNodeAdapter({ routes: (router) => router.service(EdgeService, this.service()) }),
    );
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    this.server = server;
    await new Promise<void>((resolve) => server.listen(this.socket, resolve));
  }

  /** The process dies with all it held. */
  async kill(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    this.batches = [];
    this.sequence = 0n;
    this.keys = undefined;
    this.ticketKeys = undefined;
    this.acmeTokens.clear();
    this.entries.clear();
    this.materials.clear();
    this.staples.clear();
    this.config = create(ConfigPositionSchema);
    this.bans = create(BanPositionSchema);
    const ended = new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
    for (const socket of this.sockets) socket.destroy();
    await ended;
  }

  /** A new process takes its place. */
  async restart(instanceId: string): Promise<void> {
    await this.kill();
    this.instanceId = instanceId;
    await this.start();
  }

  /** Something happened. */
  tell(content: BatchContent): void {
    this.sequence++;
    this.batches.push(create(SecurityBatchSchema, { ...content, sequence: this.sequence }));
    this.wake();
  }

  /** Batches that are not acknowledged. */
  get kept(): number {
    return this.batches.length;
  }

  private service(): Partial<ServiceImpl<typeof EdgeService>> {
    return {
      getStatus: () => ({
        instanceId: this.instanceId,
        version: 'test',
        serving: true,
        bans: { position: this.bans, capacity: 1000n },
        challengeKeysVersion: this.keys?.version ?? 0n,
        sessionTicketKeysVersion: this.ticketKeys?.version ?? 0n,
        capabilities: this.capabilities,
        ...(this.folder ? { config: this.config, failed: this.failed } : {}),
      }),
      applyConfig: (request) => {
        this.calls.push('applyConfig');
        for (const { kind, id } of request.deletes) this.entries.delete(`${kind}/${id}`);
        for (const { kind, id, body } of request.upserts) this.entries.set(`${kind}/${id}`, body);
        this.config = request.target!;
        return { position: this.config, failed: this.failed };
      },
      reloadConfig: () => {
        this.calls.push('reloadConfig');
        this.readConfig();
        return { position: this.config, failed: this.failed };
      },
      readCertificates: () => {
        this.calls.push('readCertificates');
        this.readPack();
        return { position: this.config, failed: this.failed };
      },
      applyBans: (request) => {
        this.calls.push('applyBans');
        this.bans = request.target!;
        this.lifted.push(...request.liftedOwn);
        return { state: { position: this.bans } };
      },
      setChallengeKeys: ({ keys }) => {
        this.calls.push('setChallengeKeys');
        this.keys = keys;
        return {};
      },
      setSessionTicketKeys: ({ keys }) => {
        this.calls.push('setSessionTicketKeys');
        this.ticketKeys = keys;
        return {};
      },
      setAcmeTokens: ({ complete, upserts, removed }) => {
        this.calls.push('setAcmeTokens');
        if (complete) this.acmeTokens.clear();
        for (const { host, token } of removed) this.acmeTokens.delete(`${host}/${token}`);
        for (const token of upserts) this.acmeTokens.set(`${token.host}/${token.token}`, token);
        return {};
      },
      restoreSecurity: (request) => {
        this.calls.push('restoreSecurity');
        this.restored.push(request);
        return {};
      },
      watchSecurity: (request, { signal }) => this.watch(request, signal),
    };
  }

  private readConfig(): void {
    this.entries.clear();
    let isHeader = true;
    scanFile(join(this.folder!, 'config.journal'), (payload) => {
      if (isHeader) {
        isHeader = false;
        return;
      }
      readConfigRecord(payload, {
        upsert: (start, end) => {
          const { kind, id, body } = parseEntry(payload, start, end);
          this.entries.set(`${kind}/${id}`, Uint8Array.from(body));
        },
        remove: ({ kind, id }) => this.entries.delete(`${kind}/${id}`),
        position: (position) => {
          this.config = position;
        },
      });
    });
  }

  private readPack(): void {
    this.materials.clear();
    this.staples.clear();
    scanFile(join(this.folder!, 'certificates.pack'), (payload) => {
      const { record } = fromBinary(CertificateRecordSchema, payload);
      const fingerprint = Buffer.from(record.value!.fingerprint).toString('hex');
      if (record.case === 'material') this.materials.add(fingerprint);
      if (record.case === 'staple') this.staples.set(fingerprint, record.value.ocspResponse);
    });
  }

  private async *watch(request: WatchSecurityRequest, signal: AbortSignal) {
    this.calls.push('watchSecurity');
    this.watches.push(request);
    const instance = this.instanceId;
    if (request.instanceId === instance) this.batches = this.batches.filter(({ sequence }) => sequence > request.after);
    let sent = 0n;
    for (;;) {
      const next = this.batches.find(({ sequence }) => sequence > sent);
      if (next) {
        sent = next.sequence;
        yield next;
        continue;
      }
      if (signal.aborted || this.instanceId !== instance) return;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
  }
}

/** A missing file is an empty one. */
function scanFile(path: string, onRecord: (payload: Buffer) => void): void {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return;
  }
  scanJournal(fd, (payload) => {
    onRecord(payload);
    return true;
  });
  closeSync(fd);
}

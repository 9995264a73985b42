// Client of the node channel: Connect over HTTP/2 with mutual TLS. No disk, no timers but those of a call; the edge agent
// builds its loops on it and a thousand of them fit into one process.

import { X509Certificate } from 'node:crypto';
import { create, fromBinary } from '@bufbuild/protobuf';
import { type CallOptions, type Client, createClient } from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node';
import type {
  BanPosition,
  GetBansRequest,
  GetBansResponse,
  ReportBansRequest,
  ReportLostBansRequest,
} from '../../proto/gen/svc/node/v1/bans_pb.js';
import { type BanBatch, BanBatchSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import {
  type AcmeBatch,
  AcmeBatchSchema,
  type AcmePosition,
  type CertificateMaterial,
  type GetAcmeTokensResponse,
  type GetCertificatesRequest,
  type SessionTicketKeys,
} from '../../proto/gen/svc/node/v1/certificates_pb.js';
import {
  type ConfigDelta,
  ConfigDeltaSchema,
  type ConfigPosition,
  type GetConfigRequest,
  type GetConfigResponse,
} from '../../proto/gen/svc/node/v1/config_pb.js';
import {
  type FeedBatch,
  FeedBatchSchema,
  type FeedPosition,
  type GetFeedRequest,
  type GetFeedResponse,
} from '../../proto/gen/svc/node/v1/feeds_pb.js';
import type {
  ReportLogsRequest,
  ReportLogsResponse,
  ReportLogTailRequest,
} from '../../proto/gen/svc/node/v1/logs_pb.js';
import {
  type AppliedRequest,
  type HeartbeatRequest,
  type HeartbeatResponse,
  type NodeInfo,
  NodeInfoSchema,
  NodeService,
  type RenewCertificateResponse,
  type ReportStatsRequest,
  type ReportStatsResponse,
  type ReportVitalsRequest,
  type VitalWatch,
  type WatchEvent,
} from '../../proto/gen/svc/node/v1/node_pb.js';
import type { PurgeSecret, SubmitPurgeRequest, SubmitPurgeResponse } from '../../proto/gen/svc/node/v1/purges_pb.js';
import type { ChallengeKeys, ReportSecurityRequest } from '../../proto/gen/svc/node/v1/security_pb.js';
import type { Prefetch, Task, TaskResult } from '../../proto/gen/svc/node/v1/tasks_pb.js';
import {
  certificatePin,
  fetchPinnedAuthority,
  keyMatches,
  PinError,
  parsePin,
  parseServerUrl,
  pinnedTlsOptions,
  type ServerAddress,
} from './pinned-tls.ts';

/** Largest answer accepted, bytes. */
export const READ_MAX_BYTES = 32 * 1024 * 1024;
const CALL_TIMEOUT_MS = 30_000;
const PING_INTERVAL_MS = 15_000;
const PING_TIMEOUT_MS = 10_000;

type Init<T> = Omit<Partial<T>, '$typeName' | '$unknown'>;

/** What a node knows about itself after enrollment. PEM texts. */
export interface NodeIdentity {
  nodeId: string;
  clusterId: string;
  nodeName: string;
  serverUrl: string;
  serverName: string;
  caSha256: string;
  keyPem: string;
  certificatePem: string;
  authorityPem: string;
}

export interface EnrollOptions {
  serverUrl: string;
  /** SHA-256 of the authority's DER, hex. */
  caSha256: string;
  /** One-time token (`ewt_…`). */
  token: string;
  info: Init<NodeInfo>;
  /** Name the server's certificate must carry; default: host of the URL. */
  serverName?: string;
  signal?: AbortSignal;
}

interface Connection {
  client: Client<typeof NodeService>;
  close(): void;
}

function openConnection(
  server: ServerAddress,
  authorityPem: string,
  credentials?: { key: string; cert: string },
): Connection {
  const sessions = new Http2SessionManager(
    server.url,
    { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS },
    { ...pinnedTlsOptions(server, authorityPem), ...credentials },
  );
  const transport = createConnectTransport({
    baseUrl: server.url,
    httpVersion: '2',
    sessionManager: sessions,
    useBinaryFormat: true,
    // A batch is encoded once for all nodes; asking for compression would make the console compress it per node.
    acceptCompression: [],
    readMaxBytes: READ_MAX_BYTES,
    defaultTimeoutMs: CALL_TIMEOUT_MS,
  });
  return { client: createClient(NodeService, transport), close: () => sessions.abort() };
}

/**
 * Exchanges a token for an identity. The server must prove the pinned authority before the token is sent. Throws PinError
 * when it cannot, a ConnectError when the console refuses.
 */
export async function enroll(options: EnrollOptions): Promise<NodeIdentity> {
  const pin = parsePin(options.caSha256);
  const server = parseServerUrl(options.serverUrl, options.serverName);
  const authorityPem = await fetchPinnedAuthority(server, pin, options.signal);
  // Loaded only here: the certificate library takes longer to load than the rest of the agent.
  const { createCertificateRequest } = await import('./certificate-request.ts');
  const request = await createCertificateRequest(options.info.hostname ?? 'node');
  const connection = openConnection(server, authorityPem);
  try {
    const answer = await connection.client.enroll(
      { token: options.token, csrPem: request.csrPem, info: create(NodeInfoSchema, options.info) },
      options.signal ? { signal: options.signal } : {},
    );
    assertIssued(answer.certificatePem, request.keyPem, answer.caCertificatePem, pin);
    if (answer.nodeId === '' || answer.clusterId === '') throw new Error('the console returned no node ID');
    return {
      nodeId: answer.nodeId,
      clusterId: answer.clusterId,
      nodeName: answer.nodeName,
      serverUrl: server.url,
      serverName: server.serverName,
      caSha256: pin,
      keyPem: request.keyPem,
      certificatePem: answer.certificatePem,
      authorityPem,
    };
  } finally {
    connection.close();
  }
}

/** Throws unless the certificate belongs to the key, comes from the pinned authority and is signed by it. */
export function assertIssued(certificatePem: string, keyPem: string, authorityPem: string, pin: string): void {
  if (certificatePin(authorityPem) !== pin) throw new PinError('the console presented another certificate authority');
  if (!keyMatches(certificatePem, keyPem))
    throw new PinError('the issued certificate does not match the key of this node');
  const authority = new X509Certificate(authorityPem);
  if (!new X509Certificate(certificatePem).verify(authority.publicKey)) {
    throw new PinError('the issued certificate is not signed by the pinned certificate authority');
  }
}

/** A message of the Watch stream with its batch decoded. */
export type NodeEvent =
  | Exclude<WatchEvent['event'], { case: 'configDelta' | 'banBatch' | 'acmeBatch' | 'feedBatch' }>
  | { case: 'configDelta'; value: ConfigDelta }
  | { case: 'banBatch'; value: BanBatch }
  | { case: 'acmeBatch'; value: AcmeBatch }
  | { case: 'feedBatch'; value: FeedBatch };

export function decodeEvent(event: WatchEvent): NodeEvent {
  switch (event.event.case) {
    case 'configDelta':
      return { case: 'configDelta', value: fromBinary(ConfigDeltaSchema, event.event.value) };
    case 'banBatch':
      return { case: 'banBatch', value: fromBinary(BanBatchSchema, event.event.value) };
    case 'acmeBatch':
      return { case: 'acmeBatch', value: fromBinary(AcmeBatchSchema, event.event.value) };
    case 'feedBatch':
      return { case: 'feedBatch', value: fromBinary(FeedBatchSchema, event.event.value) };
    default:
      return event.event;
  }
}

/** The calls of an enrolled node over one HTTP/2 connection, which is opened by the first call and again when it broke. */
export class NodeChannel {
  private readonly connection: Connection;

  /** Throws when the identity's texts are no PEM. */
  constructor(identity: NodeIdentity) {
    this.connection = openConnection(parseServerUrl(identity.serverUrl, identity.serverName), identity.authorityPem, {
      key: identity.keyPem,
      cert: identity.certificatePem,
    });
  }

  /** Events until the stream ends, fails or the signal aborts. The positions tell the console what the node holds. */
  watch(
    positions: { config?: ConfigPosition; bans?: BanPosition; acme?: AcmePosition; feeds?: FeedPosition[] },
    signal?: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    const options: CallOptions = { timeoutMs: 0, ...(signal ? { signal } : {}) };
    return this.connection.client.watch(positions, options);
  }

  heartbeat(request: Init<HeartbeatRequest>, options?: CallOptions): Promise<HeartbeatResponse> {
    return this.connection.client.heartbeat(request, options);
  }

  async applied(request: Init<AppliedRequest>, options?: CallOptions): Promise<void> {
    await this.connection.client.applied(request, options);
  }

  getConfig(request: Init<GetConfigRequest>, options?: CallOptions): Promise<GetConfigResponse> {
    return this.connection.client.getConfig(request, options);
  }

  getBans(request: Init<GetBansRequest>, options?: CallOptions): Promise<GetBansResponse> {
    return this.connection.client.getBans(request, options);
  }

  async reportBans(request: Init<ReportBansRequest>, options?: CallOptions): Promise<void> {
    await this.connection.client.reportBans(request, options);
  }

  async reportLostBans(request: Init<ReportLostBansRequest>, options?: CallOptions): Promise<void> {
    await this.connection.client.reportLostBans(request, options);
  }

  async reportSecurity(request: Init<ReportSecurityRequest>, options?: CallOptions): Promise<void> {
    await this.connection.client.reportSecurity(request, options);
  }

  /** The cluster's keys; undefined when the console has none yet. */
  async getChallengeKeys(options?: CallOptions): Promise<ChallengeKeys | undefined> {
    return (await this.connection.client.getChallengeKeys({}, options)).keys;
  }

  /** The cluster's; undefined when the console has none yet. */
  async getSessionTicketKeys(options?: CallOptions): Promise<SessionTicketKeys | undefined> {
    return (await this.connection.client.getSessionTicketKeys({}, options)).keys;
  }

  /** Certificates with their keys; those that the console does not have are missing. */
  async getCertificates(
    request: Init<GetCertificatesRequest>,
    options?: CallOptions,
  ): Promise<readonly CertificateMaterial[]> {
    return (await this.connection.client.getCertificates(request, options)).certificates;
  }

  getAcmeTokens(options?: CallOptions): Promise<GetAcmeTokensResponse> {
    return this.connection.client.getAcmeTokens({}, options);
  }

  /** What the node lacks of a feed by name, a page at a time. */
  getFeed(request: Init<GetFeedRequest>, options?: CallOptions): Promise<GetFeedResponse> {
    return this.connection.client.getFeed(request, options);
  }

  reportLogs(request: Init<ReportLogsRequest>, options?: CallOptions): Promise<ReportLogsResponse> {
    return this.connection.client.reportLogs(request, options);
  }

  async reportLogTail(request: Init<ReportLogTailRequest>, options?: CallOptions): Promise<void> {
    await this.connection.client.reportLogTail(request, options);
  }

  reportStats(request: Init<ReportStatsRequest>, options?: CallOptions): Promise<ReportStatsResponse> {
    return this.connection.client.reportStats(request, options);
  }

  /** Answers what the console watches now. */
  async reportVitals(request: Init<ReportVitalsRequest>, options?: CallOptions): Promise<VitalWatch | undefined> {
    return (await this.connection.client.reportVitals(request, options)).vitalWatch;
  }

  /** Leases tasks that wait for this node, at most `limit`. */
  async takeTasks(limit: number, options?: CallOptions): Promise<readonly Task[]> {
    return (await this.connection.client.takeTasks({ limit }, options)).tasks;
  }

  /** Answers ids of results that the console refuses: the task is another attempt's now. */
  async reportTasks(results: readonly Init<TaskResult>[], options?: CallOptions): Promise<readonly string[]> {
    return (await this.connection.client.reportTasks({ results: [...results] }, options)).refused;
  }

  /** What a task of the kind "prefetch" is to fetch; undefined where the task is gone. */
  async getPrefetch(cacheTaskId: string, options?: CallOptions): Promise<Prefetch | undefined> {
    return (await this.connection.client.getPrefetch({ cacheTaskId }, options)).prefetch;
  }

  /** The cluster's. */
  async getPurgeSecret(options?: CallOptions): Promise<PurgeSecret | undefined> {
    return (await this.connection.client.getPurgeSecret({}, options)).secret;
  }

  /** Has the console create the task of a PURGE request. */
  submitPurge(request: Init<SubmitPurgeRequest>, options?: CallOptions): Promise<SubmitPurgeResponse> {
    return this.connection.client.submitPurge(request, options);
  }

  renewCertificate(csrPem: string, options?: CallOptions): Promise<RenewCertificateResponse> {
    return this.connection.client.renewCertificate({ csrPem }, options);
  }

  /** Ends the connection and every call on it. */
  close(): void {
    this.connection.close();
  }
}

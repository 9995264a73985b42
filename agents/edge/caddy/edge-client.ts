// Calls Caddy's EdgeService over the unix socket: Connect's unary protocol (POST, application/proto) on kept-alive HTTP/1.1
// connections. A generic Connect client costs several times as much per call, and these calls are on the path of a ban.

import { Agent, request } from 'node:http';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import type { EntryKey } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import {
  type AnswerPurgeRequestRequest,
  type ApplyBansRequest,
  type ApplyBansResponse,
  type ApplyConfigRequest,
  type ApplyConfigResponse,
  type ApplyPurgesRequest,
  type DrainLogsResponse,
  type DrainStatsResponse,
  EdgeService,
  type GetStatusResponse,
  type GetVitalsResponse,
  type ListFailingResponse,
  type PrefetchRequest,
  PrefetchRequestSchema,
  type PurgeRequest,
  PurgeRequestSchema,
  type RestoreSecurityRequest,
  type SecurityBatch,
  SecurityBatchSchema,
  type SetAcmeTokensRequest,
  type SetChallengeKeysRequest,
  type SetPurgeSecretRequest,
  type SetSessionTicketKeysRequest,
  type TailLogsResponse,
  type WatchSecurityRequest,
  WatchSecurityRequestSchema,
} from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { LogTailWatch } from '../../../proto/gen/svc/node/v1/logs_pb.js';
import { type PrefetchState, PrefetchStateSchema } from '../../../proto/gen/svc/node/v1/tasks_pb.js';
import { EdgeError, refusal } from './edge-error.ts';
import { serverStream } from './edge-stream.ts';

const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_SOCKETS = 4;
const CALL_TIMEOUT_MS = 10_000;
/** Figures that come later are not of now. */
const VITALS_TIMEOUT_MS = 4_000;
/** The watch ends in the data plane meanwhile. */
const TAIL_TIMEOUT_MS = 4_000;
/** Reading 100,000 sites again takes seconds on a small machine. */
const RELOAD_TIMEOUT_MS = 120_000;

type Init<T> = Omit<Partial<T>, '$typeName' | '$unknown'>;

export class EdgeClient {
  private readonly socketPath: string;
  private readonly agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS, scheduling: 'lifo' });

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  getStatus(): Promise<GetStatusResponse> {
    return this.call(EdgeService.method.getStatus, {}, CALL_TIMEOUT_MS);
  }

  applyConfig(change: Init<ApplyConfigRequest>): Promise<ApplyConfigResponse> {
    return this.call(EdgeService.method.applyConfig, change, RELOAD_TIMEOUT_MS);
  }

  reloadConfig(): Promise<ApplyConfigResponse> {
    return this.call(EdgeService.method.reloadConfig, {}, RELOAD_TIMEOUT_MS);
  }

  /** Has Caddy look at the pack of certificates again. */
  readCertificates(): Promise<ApplyConfigResponse> {
    return this.call(EdgeService.method.readCertificates, {}, RELOAD_TIMEOUT_MS);
  }

  /** Keys after `after` whose newest version does not compile. */
  listFailing(after: EntryKey | undefined): Promise<ListFailingResponse> {
    return this.call(EdgeService.method.listFailing, after ? { after } : {}, CALL_TIMEOUT_MS);
  }

  applyBans(change: Init<ApplyBansRequest>): Promise<ApplyBansResponse> {
    return this.call(EdgeService.method.applyBans, change, CALL_TIMEOUT_MS);
  }

  reloadBans(): Promise<ApplyBansResponse> {
    return this.call(EdgeService.method.reloadBans, {}, RELOAD_TIMEOUT_MS);
  }

  retryBans(): Promise<ApplyBansResponse> {
    return this.call(EdgeService.method.retryBans, {}, CALL_TIMEOUT_MS);
  }

  /** `clockOffsetMs`: the console's clock minus this machine's, whole milliseconds. */
  drainStats(acknowledged: bigint, clockOffsetMs: number): Promise<DrainStatsResponse> {
    const request = { acknowledged, clockOffsetMs: BigInt(clockOffsetMs) };
    return this.call(EdgeService.method.drainStats, request, CALL_TIMEOUT_MS);
  }

  /** The oldest rows of request logs. `taken`: what of an earlier answer the console has. */
  drainLogs(
    taken: Pick<DrainLogsResponse, 'ring' | 'position'> | undefined,
    clockOffsetMs: number,
  ): Promise<DrainLogsResponse> {
    const request = {
      ring: taken?.ring ?? 0n,
      acknowledged: taken?.position ?? 0n,
      clockOffsetMs: BigInt(clockOffsetMs),
    };
    return this.call(EdgeService.method.drainLogs, request, CALL_TIMEOUT_MS);
  }

  /** Requests of watched sites that ended since the call before. */
  tailLogs(watches: LogTailWatch[], clockOffsetMs: number): Promise<TailLogsResponse> {
    const request = { watches, clockOffsetMs: BigInt(clockOffsetMs) };
    return this.call(EdgeService.method.tailLogs, request, TAIL_TIMEOUT_MS);
  }

  /** How requests of the node and of these sites fared since Caddy started. */
  getVitals(siteIds: string[]): Promise<GetVitalsResponse> {
    return this.call(EdgeService.method.getVitals, { siteIds }, VITALS_TIMEOUT_MS);
  }

  async setChallengeKeys(keys: Init<SetChallengeKeysRequest>): Promise<void> {
    await this.call(EdgeService.method.setChallengeKeys, keys, CALL_TIMEOUT_MS);
  }

  async setSessionTicketKeys(keys: Init<SetSessionTicketKeysRequest>): Promise<void> {
    await this.call(EdgeService.method.setSessionTicketKeys, keys, CALL_TIMEOUT_MS);
  }

  async setAcmeTokens(change: Init<SetAcmeTokensRequest>): Promise<void> {
    await this.call(EdgeService.method.setAcmeTokens, change, CALL_TIMEOUT_MS);
  }

  /** Puts purges in force, for good. */
  async applyPurges(purges: Init<ApplyPurgesRequest>): Promise<void> {
    await this.call(EdgeService.method.applyPurges, purges, CALL_TIMEOUT_MS);
  }

  /** Has Caddy fetch URLs: how far it is, until the last state, the result. */
  async *prefetch(prefetch: Init<PrefetchRequest>, signal: AbortSignal): AsyncGenerator<PrefetchState> {
    const { method } = EdgeService;
    const message = toBinary(PrefetchRequestSchema, create(PrefetchRequestSchema, prefetch));
    const path = `/${method.prefetch.parent.typeName}/${method.prefetch.name}`;
    for await (const payload of serverStream(this.socketPath, path, message, signal))
      yield fromBinary(PrefetchStateSchema, payload);
  }

  async setPurgeSecret(secret: Init<SetPurgeSecretRequest>): Promise<void> {
    await this.call(EdgeService.method.setPurgeSecret, secret, CALL_TIMEOUT_MS);
  }

  async answerPurgeRequest(answer: Init<AnswerPurgeRequestRequest>): Promise<void> {
    await this.call(EdgeService.method.answerPurgeRequest, answer, CALL_TIMEOUT_MS);
  }

  /** PURGE requests of clients while they wait, until the stream ends, fails or the signal aborts. */
  async *watchPurgeRequests(signal: AbortSignal): AsyncGenerator<PurgeRequest> {
    const { watchPurgeRequests } = EdgeService.method;
    const path = `/${watchPurgeRequests.parent.typeName}/${watchPurgeRequests.name}`;
    for await (const payload of serverStream(this.socketPath, path, new Uint8Array(), signal))
      yield fromBinary(PurgeRequestSchema, payload);
  }

  async restoreSecurity(state: Init<RestoreSecurityRequest>): Promise<void> {
    await this.call(EdgeService.method.restoreSecurity, state, CALL_TIMEOUT_MS);
  }

  /**
   * Own bans and security events as they happen, until the stream ends, fails or the signal aborts. A batch that cannot be
   * decoded is told to `skipped`.
   */
  async *watchSecurity(
    cursor: Init<WatchSecurityRequest>,
    signal: AbortSignal,
    skipped: (error: unknown) => void = () => undefined,
  ): AsyncGenerator<SecurityBatch> {
    const { watchSecurity } = EdgeService.method;
    const message = toBinary(WatchSecurityRequestSchema, create(WatchSecurityRequestSchema, cursor));
    const path = `/${watchSecurity.parent.typeName}/${watchSecurity.name}`;
    for await (const payload of serverStream(this.socketPath, path, message, signal)) {
      let batch: SecurityBatch;
      try {
        batch = fromBinary(SecurityBatchSchema, payload);
      } catch (error) {
        skipped(error);
        continue;
      }
      yield batch;
    }
  }

  close(): void {
    this.agent.destroy();
  }

  private async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    input: Init<MessageShape<I>>,
    timeoutMs: number,
  ): Promise<MessageShape<O>> {
    const body = toBinary(method.input, create(method.input, input as never));
    const path = `/${method.parent.typeName}/${method.name}`;
    for (let tries = 0; ; tries++) {
      try {
        return fromBinary(method.output, await this.post(path, body, timeoutMs));
      } catch (error) {
        // Every kept connection may have died with the server it led to; each call may safely run twice.
        if (!(error instanceof EdgeError) || error.code !== 'stale') throw error;
        if (tries >= MAX_SOCKETS) throw new EdgeError('unavailable', error.message, error.cause);
      }
    }
  }

  private post(path: string, body: Uint8Array, timeoutMs: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const call = request({
        socketPath: this.socketPath,
        agent: this.agent,
        method: 'POST',
        path,
        headers: {
          host: 'edge',
          'content-type': 'application/proto',
          'content-length': body.length,
          'connect-protocol-version': '1',
          'connect-timeout-ms': String(timeoutMs),
        },
      });
      const timer = setTimeout(() => call.destroy(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
      call.once('error', (error) => {
        clearTimeout(timer);
        const stale =
          call.reusedSocket && ['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '');
        reject(
          new EdgeError(stale ? 'stale' : 'unavailable', `the data plane does not respond: ${error.message}`, error),
        );
      });
      call.once('response', (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > MAX_ANSWER_BYTES) response.destroy(new Error('response too large'));
          else chunks.push(chunk);
        });
        response.once('error', (error) => {
          clearTimeout(timer);
          reject(new EdgeError('unavailable', `the data plane stopped responding: ${error.message}`, error));
        });
        response.once('end', () => {
          clearTimeout(timer);
          const answer = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes);
          if (response.statusCode === 200) resolve(answer);
          else reject(refusal(response.statusCode ?? 0, answer));
        });
      });
      call.end(body);
    });
  }
}

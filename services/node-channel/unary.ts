// Connect handlers: the mapping of calls to functions, of errors to codes, and nothing else.
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
} from '@connectrpc/connect';
import { compressionGzip, connectNodeAdapter } from '@connectrpc/connect-node';
import { errorCodeOf } from '../../contract/errors.ts';
import { countedAddress } from '../../contract/scalars/cidr.ts';
import type { CertificateAuthority } from '../../mixins/certificate-authority.ts';
import { NodeService } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { asUnavailable } from '../../runtime/write.ts';
import { type Allowance, UNCOUNTED } from './budgets.ts';
import {
  applied,
  type CallContext,
  getAcmeTokens,
  getBans,
  getConfig,
  getFeed,
  heartbeat,
  reportVitals,
} from './calls.ts';
import { getCertificates } from './certificate-calls.ts';
import { enroll, renewCertificate } from './enroll.ts';
import { EnrollmentAttempts } from './enrollment-attempts.ts';
import type { Exchange } from './exchange.ts';
import type { NodeIdentity } from './identity.ts';
import { reportLostBans } from './lost-bans.ts';
import { type Calls, isPlain, servePlain } from './plain-calls.ts';
import { getPurgeSecret, submitPurge } from './purge-calls.ts';
import { getChallengeKeys, reportBans, reportSecurity } from './security-calls.ts';
import { getSessionTicketKeys } from './session-ticket-keys.ts';
import { getPrefetch } from './tasks/prefetch-calls.ts';
import { reportTasks, takeTasks } from './tasks/task-calls.ts';
import { Turns } from './turns.ts';

export type Handler = (exchange: Exchange, caller: Caller) => void;

const PATH_PREFIX = `/${NodeService.typeName}/`;
/** Body of a call before anybody is known, bytes; counted after decompression. */
const STRANGER_BYTES = 64 * 1024;
const NODE_BYTES = 16 * 1024 * 1024;
/** Of a call whose body the adapter reads, or inflates: counted in full before. */
const ADAPTED_BYTES = 4 * 1024 * 1024;
/** Below this, compressing costs more than it saves. */
const COMPRESS_MIN_BYTES = 8 * 1024;
/** Enrollments at once: each holds a database connection that the API shares. */
const ENROLLMENTS = 4;
const MAX_WAITING_ENROLLMENTS = 2000;

/** What the check before the adapter found out. */
export interface Caller {
  node: NodeIdentity | null;
  remoteAddress: string | null;
  allowance: Allowance;
  connection: CallerConnection;
}

/** The connection of a machine that enrolls. */
export interface CallerConnection {
  /** Lets it live until the function returned is called. */
  hold(): () => void;
  /** It is the connection of this node. */
  known(nodeId: string): void;
}

export const NO_CONNECTION: CallerConnection = { hold: () => () => undefined, known: () => undefined };
const NOBODY: Caller = { node: null, remoteAddress: null, allowance: UNCOUNTED, connection: NO_CONNECTION };
const callerKey = createContextKey<Caller>(NOBODY);

/** Handlers of Enroll and of all other unary calls. */
export function createUnaryHandlers(
  context: CallContext,
  authority: CertificateAuthority,
): { stranger: Handler; node: Handler } {
  const { runtime } = context;
  const callers = new WeakMap<object, Caller>();
  const shared = {
    contextValues: (request: object) => createContextValues().set(callerKey, callers.get(request) ?? NOBODY),
    grpc: false,
    grpcWeb: false,
    acceptCompression: [compressionGzip],
    compressMinBytes: COMPRESS_MIN_BYTES,
    interceptors: [errorCodes(runtime)],
  };
  const adapted = (readMaxBytes: number, routes: (router: ConnectRouter) => void): Handler => {
    const handle = connectNodeAdapter({ ...shared, readMaxBytes, routes });
    return (exchange, caller) => {
      const { request, response } = exchange.toNode();
      callers.set(request, caller);
      handle(request as Parameters<typeof handle>[0], response as Parameters<typeof handle>[1]);
    };
  };
  const calls = nodeCalls(context, authority);
  const adapter = adapted(ADAPTED_BYTES, (router) => routeNodeCalls(router, calls));
  const limits = { maxBytes: NODE_BYTES, compressMinBytes: COMPRESS_MIN_BYTES };
  const asConnectError = (error: unknown, call: string) => toConnectError(runtime, error, call);
  return {
    stranger: adapted(STRANGER_BYTES, (router) => routeEnroll(router, runtime, authority)),
    node: (exchange, caller) => {
      if (!isPlain(exchange)) {
        caller.allowance.receive(ADAPTED_BYTES);
        adapter(exchange, caller);
      } else void servePlain(exchange.path.slice(PATH_PREFIX.length), calls, caller, exchange, limits, asConnectError);
    },
  };
}

function routeEnroll(router: ConnectRouter, runtime: Runtime, authority: CertificateAuthority): void {
  const turns = new Turns({
    running: ENROLLMENTS,
    waiting: MAX_WAITING_ENROLLMENTS,
    waitingEach: MAX_WAITING_ENROLLMENTS,
  });
  const attempts = new EnrollmentAttempts();
  router.rpc(NodeService.method.enroll, async (request, call) => {
    const { remoteAddress, connection } = call.values.get(callerKey);
    const address = countedAddress(remoteAddress);
    const release = connection.hold();
    const { certificate, ...enrolled } = await turns
      .take(address, () => attempts.run(address, () => enroll(runtime, authority, request, remoteAddress)))
      .finally(release);
    connection.known(enrolled.nodeId);
    runtime.log.info({ nodeId: enrolled.nodeId, clusterId: enrolled.clusterId }, 'node enrolled');
    return { ...enrolled, ...certificateAnswer(authority, certificate) };
  });
}

/** What the calls of an authenticated node do, however they arrive. */
function nodeCalls(context: CallContext, authority: CertificateAuthority): Calls {
  const { runtime } = context;
  return {
    renewCertificate: async ({ csrPem }, { node, remoteAddress }) =>
      certificateAnswer(authority, await renewCertificate(runtime, authority, known(node), csrPem, remoteAddress)),
    heartbeat: (request, { node, remoteAddress }) => heartbeat(context, known(node), request, remoteAddress),
    applied: (request, { node }) => {
      applied(context, known(node), request);
      return {};
    },
    getConfig: (request, { node }) => getConfig(context, known(node), request),
    getBans: (request, { node }) => getBans(context, known(node), request),
    reportStats: async (request, { node, allowance }) => ({
      acknowledged: await context.stats.report(known(node), request, allowance),
    }),
    reportLogs: async (request, { node, allowance }) => ({
      refused: await context.logs.report(known(node), request, allowance),
    }),
    reportLogTail: (request, { node, allowance }) => {
      allowance.rows(request.rows.length);
      context.tails.report(known(node), request);
      return {};
    },
    reportBans: async (request, { node, allowance }) => {
      allowance.rows(request.bans.length);
      await reportBans(context, known(node), request);
      return {};
    },
    reportLostBans: async (request, { node, allowance }) => {
      allowance.rows(request.bans.length);
      await reportLostBans(context, known(node), request);
      return {};
    },
    reportSecurity: async (request, { node, allowance }) => {
      allowance.rows(request.events.length + request.sites.length);
      await reportSecurity(context, known(node), request);
      return {};
    },
    reportVitals: (request, { node }) => reportVitals(context, known(node), request),
    getChallengeKeys: (_request, { node }) => getChallengeKeys(context, known(node)),
    getCertificates: (request, { node }) => getCertificates(context, known(node), request),
    getSessionTicketKeys: (_request, { node }) => getSessionTicketKeys(context, known(node)),
    getAcmeTokens: (_request, { node }) => getAcmeTokens(context, known(node)),
    getFeed: (request, { node }) => getFeed(context, known(node), request),
    takeTasks: (request, { node }) => takeTasks(context, known(node), request),
    reportTasks: async (request, { node, allowance }) => {
      allowance.rows(request.results.length);
      return reportTasks(context, known(node), request);
    },
    getPrefetch: (request, { node }) => getPrefetch(context, known(node), request),
    getPurgeSecret: (_request, { node }) => getPurgeSecret(context, known(node)),
    submitPurge: (request, { node }) => submitPurge(context, known(node), request),
  };
}

function routeNodeCalls(router: ConnectRouter, calls: Calls): void {
  const { method } = NodeService;
  const callerOf = (call: HandlerContext) => call.values.get(callerKey);
  router.rpc(method.renewCertificate, (request, call) => calls.renewCertificate(request, callerOf(call)));
  router.rpc(method.heartbeat, (request, call) => calls.heartbeat(request, callerOf(call)));
  router.rpc(method.applied, (request, call) => calls.applied(request, callerOf(call)));
  router.rpc(method.getConfig, (request, call) => calls.getConfig(request, callerOf(call)));
  router.rpc(method.getBans, (request, call) => calls.getBans(request, callerOf(call)));
  router.rpc(method.reportStats, (request, call) => calls.reportStats(request, callerOf(call)));
  router.rpc(method.reportLogs, (request, call) => calls.reportLogs(request, callerOf(call)));
  router.rpc(method.reportLogTail, (request, call) => calls.reportLogTail(request, callerOf(call)));
  router.rpc(method.reportBans, (request, call) => calls.reportBans(request, callerOf(call)));
  router.rpc(method.reportLostBans, (request, call) => calls.reportLostBans(request, callerOf(call)));
  router.rpc(method.reportSecurity, (request, call) => calls.reportSecurity(request, callerOf(call)));
  router.rpc(method.reportVitals, (request, call) => calls.reportVitals(request, callerOf(call)));
  router.rpc(method.getChallengeKeys, (request, call) => calls.getChallengeKeys(request, callerOf(call)));
  router.rpc(method.getCertificates, (request, call) => calls.getCertificates(request, callerOf(call)));
  router.rpc(method.getSessionTicketKeys, (request, call) => calls.getSessionTicketKeys(request, callerOf(call)));
  router.rpc(method.getAcmeTokens, (request, call) => calls.getAcmeTokens(request, callerOf(call)));
  router.rpc(method.getFeed, (request, call) => calls.getFeed(request, callerOf(call)));
  router.rpc(method.takeTasks, (request, call) => calls.takeTasks(request, callerOf(call)));
  router.rpc(method.reportTasks, (request, call) => calls.reportTasks(request, callerOf(call)));
  router.rpc(method.getPrefetch, (request, call) => calls.getPrefetch(request, callerOf(call)));
  router.rpc(method.getPurgeSecret, (request, call) => calls.getPurgeSecret(request, callerOf(call)));
  router.rpc(method.submitPurge, (request, call) => calls.submitPurge(request, callerOf(call)));
}

function known(node: NodeIdentity | null): NodeIdentity {
  // The gate lets nobody in without; a mistake there must not become a call without an identity.
  if (!node) throw new ConnectError('the node has no valid certificate; enroll it again', Code.Unauthenticated);
  return node;
}

function certificateAnswer(
  authority: CertificateAuthority,
  { certificatePem, notAfter }: { certificatePem: string; notAfter: Date },
): { certificatePem: string; caCertificatePem: string; notAfter: bigint } {
  return {
    certificatePem,
    caCertificatePem: authority.certificatePem,
    notAfter: BigInt(Math.floor(notAfter.getTime() / 1000)),
  };
}

function errorCodes(runtime: Runtime): Interceptor {
  return (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      throw toConnectError(runtime, error, request.method.name);
    }
  };
}

/** Errors with a code pass; a busy or absent database is `unavailable`; everything else is masked and logged once. */
function toConnectError(runtime: Runtime, error: unknown, call: string): ConnectError {
  if (error instanceof ConnectError) return error;
  if (errorCodeOf(asUnavailable(error)) === 'SERVICE_UNAVAILABLE') {
    return new ConnectError('the console is temporarily unavailable', Code.Unavailable);
  }
  // The pool has no code for it.
  if (error instanceof Error && error.message === 'timeout exceeded when trying to connect') {
    return new ConnectError('the console is temporarily unavailable', Code.Unavailable);
  }
  runtime.log.error({ err: error, call }, 'node channel call failed');
  return new ConnectError('internal error', Code.Internal);
}

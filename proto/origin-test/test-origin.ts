// One request to an origin, with each step told apart: the console and nodes run it. Nothing of the response but its status
// is read, and no connection outlives the test.
import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { AddressRefused, resolveChecked } from '../address-policy.ts';
import { type Failure, failureOf, StepFailed } from './failures.ts';
import { requestStatus } from './request-status.ts';

/** As the contract has it. */
export interface TestedOrigin {
  origin: { address: string; scheme: 'http' | 'https'; port: number; hostHeader: string; sni: string };
  tlsVerify: boolean;
  protocol: 'http1' | 'http2';
  /** Of the request, where the origin has no host header; '' for its address. */
  host: string;
  path: string;
  /** CIDRs that the address policy does not hold for. */
  allow: readonly string[];
  /** Of the whole test. */
  timeoutMs: number;
}

export const STEPS = ['address', 'connect', 'tls', 'response'] as const;
export type Step = (typeof STEPS)[number];

/** As the contract has it. */
export interface OriginTestResult {
  steps: { step: Step; milliseconds: number; failure: Failure | null }[];
  address: string | null;
  range: string | null;
  status: number | null;
}

const MAX_ADDRESSES = 4;
/** Of each address, so that the next one is reached too. */
const CONNECT_MS = 3000;

/** Never throws for what an origin does. */
export async function testOrigin(tested: TestedOrigin): Promise<OriginTestResult> {
  const result: OriginTestResult = { steps: [], address: null, range: null, status: null };
  const signal = AbortSignal.timeout(tested.timeoutMs);
  const open: Duplex[] = [];
  const step = async <T>(name: Step, run: () => Promise<T>): Promise<T> => {
    const begun = performance.now();
    const end = (failure: Failure | null) =>
      result.steps.push({ step: name, milliseconds: Math.round(performance.now() - begun), failure });
    try {
      const value = await within(run(), signal);
      end(null);
      return value;
    } catch (error) {
      end(failureOf(error));
      throw new StepFailed(error);
    }
  };
  try {
    await takeSteps(tested, result, step, open);
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    if (error.cause instanceof AddressRefused) {
      const { address, range } = error.cause;
      Object.assign(result, { address, range });
    }
  } finally {
    for (const socket of open) socket.destroy();
  }
  return result;
}

async function takeSteps(
  { origin, host, path, tlsVerify, protocol, allow, timeoutMs }: TestedOrigin,
  result: OriginTestResult,
  step: <T>(name: Step, run: () => Promise<T>) => Promise<T>,
  open: Duplex[],
): Promise<void> {
  const { address: named, port, scheme } = origin;
  const addresses = await step('address', () => resolveChecked(named, allow, timeoutMs));
  result.address = addresses[0] ?? null;
  const tcp = await step('connect', () => connectFirst(addresses.slice(0, MAX_ADDRESSES), port, result, open));
  const http2 = protocol === 'http2';
  let stream: Duplex = tcp;
  if (scheme === 'https') {
    const name = origin.sni || withoutPort(origin.hostHeader) || named;
    stream = await step('tls', () => secure(tcp, { name, http2, verify: tlsVerify }, open));
  }
  result.status = await step('response', () =>
    requestStatus(stream, { scheme, authority: origin.hostHeader || host || ownName(origin), path, http2 }),
  );
}

/** The first address that takes the connection; the failure of the last otherwise. */
async function connectFirst(
  addresses: readonly string[],
  port: number,
  result: OriginTestResult,
  open: Duplex[],
): Promise<Socket> {
  let failure: unknown;
  for (const address of addresses) {
    result.address = address;
    const socket = connect({ host: address, port });
    open.push(socket);
    try {
      const settled = Promise.withResolvers<void>();
      socket.once('connect', () => settled.resolve()).on('error', settled.reject);
      await within(settled.promise, AbortSignal.timeout(CONNECT_MS));
      return socket;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

async function secure(
  socket: Socket,
  { name, http2, verify }: { name: string; http2: boolean; verify: boolean },
  open: Duplex[],
): Promise<Duplex> {
  const secured = connectTls({
    socket,
    host: name,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ALPNProtocols: [http2 ? 'h2' : 'http/1.1'],
    rejectUnauthorized: verify,
  });
  open.push(secured);
  const settled = Promise.withResolvers<void>();
  secured.once('secureConnect', () => settled.resolve());
  secured.on('error', settled.reject).once('close', () => settled.reject(new StepFailed('closed')));
  await settled.promise;
  if (http2 && secured.alpnProtocol !== 'h2') throw new StepFailed('not_http2');
  return secured;
}

/** Rejects with the signal's TimeoutError when it is first. */
function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const over = Promise.withResolvers<never>();
  const end = () => over.reject(signal.reason);
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  return Promise.race([work, over.promise]).finally(() => signal.removeEventListener('abort', end));
}

/** The origin's address as a host, with its port unless that is the usual one. */
function ownName({ address, scheme, port }: TestedOrigin['origin']): string {
  const host = isIP(address) === 6 ? `[${address}]` : address;
  return port === (scheme === 'https' ? 443 : 80) ? host : `${host}:${port}`;
}

function withoutPort(host: string): string {
  if (isIP(host) === 6) return host;
  return host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
}

// Answers of the gateway: output of a procedure, refusals, and what is kept of them for a repeated request.
import type { ServerResponse } from 'node:http';
import type { ContractError } from '../../contract/errors.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { traceId } from '../../runtime/trace-context.ts';
import { errorBody, presentable, sendJson } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { answerHeaders } from './headers.ts';
import { forgetClaim, keepAnswer, releaseClaim, type StoredAnswer } from './idempotency.ts';
import { ClientGone } from './json-body.ts';
import { LostClaims } from './lost-claims.ts';
import { createRequestMetrics, type RequestMetrics } from './request-metrics.ts';

export class Answerer {
  readonly lostClaims: LostClaims;
  readonly #runtime: Runtime;
  readonly #headers: readonly string[];
  readonly #metrics: RequestMetrics;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.lostClaims = new LostClaims(runtime);
    this.#headers = answerHeaders(runtime.env.publicUrl).json;
    this.#metrics = createRequestMetrics(runtime);
  }

  /** Answers a procedure's output; the action's changes become a header. */
  async output(exchange: Exchange, output: unknown, changes: readonly string[] | undefined): Promise<void> {
    const status = exchange.procedure!.status;
    const body = JSON.stringify(output);
    const headers = changes?.length ? ['x-svc-change', changes.join(',')] : [];
    const stored = { status, body, headers: Object.fromEntries(headers.length ? [headers] : []) };
    if (exchange.idempotency) await this.#keep(exchange, stored);
    this.send(exchange, status, body, ...headers);
  }

  async #keep({ idempotency, requestId }: Exchange, answer: StoredAnswer): Promise<void> {
    try {
      await keepAnswer(this.#runtime, idempotency!, answer);
    } catch (err) {
      // The answer is true all the same. A change is stored with its own transaction; only a repetition of an answer
      // without a change runs again.
      this.#runtime.log.warn({ err, requestId }, 'idempotent response not stored');
    }
  }

  /** A JSON text as it is; `headers` are names and values in turn. Nothing when there is an answer already. */
  send(exchange: Exchange, status: number, body: string, ...headers: string[]): void {
    const { request, response, requestId, cookies } = exchange;
    if (response.headersSent || response.destroyed) return;
    headers.push('x-request-id', requestId);
    for (const cookie of cookies) headers.push('set-cookie', cookie);
    sendJson(response, status, body, this.#headers, ...headers);
    this.#metrics(exchange, status);
    // What was not read of the body is dropped, or the connection could not be used again.
    if (!request.readableEnded) request.resume();
  }

  /** Begins an answer of JSON lines that goes on; null when there is an answer already, or nobody to take it. */
  stream(exchange: Exchange): ServerResponse | null {
    const { response, requestId } = exchange;
    if (response.headersSent || response.destroyed) return null;
    response.writeHead(200, [
      ...this.#headers,
      'cache-control',
      'no-store',
      'content-type',
      'application/x-ndjson; charset=utf-8',
      // Reverse proxies that collect answers would hold lines back.
      'x-accel-buffering',
      'no',
      // Ended by this side while others wait on the connection, it would be counted as busy.
      'connection',
      'close',
      'x-request-id',
      requestId,
    ]);
    response.flushHeaders();
    this.#metrics(exchange, 200);
    return response;
  }

  /** Begins an answer that is no JSON; null when there is an answer already, or nobody to take it. */
  text(exchange: Exchange, fileName: string | null): ServerResponse | null {
    const { request, response, requestId, cookies, procedure } = exchange;
    if (response.headersSent || response.destroyed) return null;
    const headers = [...this.#headers, 'cache-control', 'no-store', 'x-request-id', requestId];
    headers.push('content-type', `${procedure!.media}; charset=utf-8`);
    if (fileName !== null) headers.push('content-disposition', `attachment; filename="${fileName}"`);
    for (const cookie of cookies) headers.push('set-cookie', cookie);
    response.writeHead(procedure!.status, headers);
    this.#metrics(exchange, procedure!.status);
    if (!request.readableEnded) request.resume();
    return response;
  }

  /** What is not there has a small body of its own form. */
  notFound(exchange: Exchange): void {
    this.send(exchange, 404, '{"error":"not_found"}');
  }

  /** The error to tell; 5xx, 401 and 429 give an idempotency key back. */
  async fail(exchange: Exchange, error: unknown): Promise<void> {
    if (error instanceof ClientGone) return;
    const log = this.#runtime.log.child({ traceId: traceId(exchange.traceparent) });
    const told = presentable(error, log, exchange.requestId, exchange.procedure?.method !== 'GET');
    const answer = errorBody(told as ContractError, exchange.surface === 'rpc');
    const body = JSON.stringify(answer);
    if (exchange.idempotency) await this.#settle(exchange, answer.status, body);
    const headers: string[] = [];
    const wait = answer.data.retryAfterSeconds;
    if (typeof wait === 'number') headers.push('retry-after', String(wait));
    this.send(exchange, answer.status, body, ...headers);
  }

  /** Refusals are kept and repeated; what may be different next time gives the key back. */
  async #settle(exchange: Exchange, status: number, body: string): Promise<void> {
    // Refusals of those who show no key are not: they could fill the table.
    const nobodys = exchange.caller.key === null;
    if (status < 500 && status !== 401 && status !== 429 && !nobodys) {
      return this.#keep(exchange, { status, body, headers: {} });
    }
    try {
      const giveUp = nobodys ? forgetClaim : releaseClaim;
      await giveUp(this.#runtime, exchange.idempotency!);
    } catch (err) {
      this.lostClaims.add(exchange.idempotency!);
      this.#runtime.log.warn({ err, requestId: exchange.requestId }, 'idempotency key not released');
    }
  }
}

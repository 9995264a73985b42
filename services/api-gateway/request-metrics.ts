// How many requests were answered with what, and in which time; also, at level debug, a line for each.
import { Counter, Histogram } from 'prom-client';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Exchange } from './exchange.ts';

export type RequestMetrics = (exchange: Exchange, status: number) => void;

export function createRequestMetrics({ metrics, log }: Runtime): RequestMetrics {
  const answered = new Counter({
    name: 'svc_gateway_requests_total',
    help: 'Responses by surface (api, rpc, auth) and status',
    labelNames: ['surface', 'status'],
    registers: [metrics],
  });
  const seconds = new Histogram({
    name: 'svc_gateway_request_seconds',
    help: 'Time from the headers of a request to its response, by procedure',
    labelNames: ['procedure'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [metrics],
  });
  return ({ request, surface, procedure, arrivedAt, requestId }, status) => {
    const ms = performance.now() - arrivedAt;
    answered.inc({ surface, status });
    if (procedure) seconds.observe({ procedure: procedure.name }, ms / 1000);
    if (!log.isLevelEnabled('debug')) return;
    const path = request.url?.split('?', 1)[0];
    log.debug({ method: request.method, path, status, ms: Math.round(ms), requestId }, 'response sent');
  };
}

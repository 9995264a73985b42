// Visitors who read pages one after the other, and what they got.
import { Agent, get } from 'node:http';

export interface Outcome {
  /** 0: the connection ended before a response. */
  status: number;
  /** The response had begun and did not end. */
  cut: boolean;
  /** Name of the origin that responded; '' where none did. */
  origin: string;
  milliseconds: number;
}

const PATIENCE_MS = 30_000;

export interface Visit {
  port: number;
  host: string;
  agent: Agent;
}

/** One GET; never rejects. */
export function visit({ port, host, agent }: Visit): Promise<Outcome> {
  const begun = performance.now();
  return new Promise((resolve) => {
    const end = (status: number, cut: boolean, origin = '') =>
      resolve({ status, cut, origin, milliseconds: performance.now() - begun });
    const request = get({ host: '127.0.0.1', port, path: '/', headers: { host }, agent, timeout: PATIENCE_MS });
    request.on('timeout', () => request.destroy());
    request.on('error', () => end(0, false));
    request.on('response', (response) => {
      const status = response.statusCode ?? 0;
      const origin = String(response.headers['x-origin'] ?? '');
      response.on('error', () => end(status, true, origin));
      response.on('close', () => end(status, !response.complete, origin));
      response.resume();
    });
  });
}

/** So many GETs by so many visitors at once. */
export async function visits(to: Omit<Visit, 'agent'>, requests: number, visitors: number): Promise<Outcome[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: visitors });
  const outcomes: Outcome[] = [];
  let begun = 0;
  const one = async () => {
    while (begun++ < requests) outcomes.push(await visit({ ...to, agent }));
  };
  await Promise.all(Array.from({ length: visitors }, one));
  agent.destroy();
  return outcomes;
}

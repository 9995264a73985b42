// A visitor of an edge with an address, a browser's name and a cookie, who can answer the js challenge by a script.
import { createHash } from 'node:crypto';
import http from 'node:http';
import { CLIENT_IP_HEADER } from './installation.ts';
import { ProtocolClient } from './protocol-client.ts';

export interface Address {
  host: string;
  port: number;
}

export interface Answer {
  status: number;
  /** Kind of challenge; "" for none. */
  challenge: string;
  /** X-Svc-Error; "" for none. */
  error: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** How an edge is reached: by plain HTTP/1.1, or by whatever a client speaks. */
export type Way = Address | ProtocolClient;

const USER_AGENT = 'Mozilla/5.0 (visitor)';

export class Visitor {
  readonly address: string;
  private readonly agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  cookie = '';

  constructor(address: string) {
    this.address = address;
  }

  get(edge: Way, host: string, path = '/'): Promise<Answer> {
    return this.request(edge, host, 'GET', path);
  }

  /** Answers the js challenge of the page at `path`; the pass becomes the visitor's cookie. */
  async passJs(edge: Way, host: string, path = '/'): Promise<Answer> {
    const page = await this.get(edge, host, path);
    const token = /data-t="([^"]+)"/.exec(page.body)?.[1];
    if (page.challenge !== 'js' || !token) throw new Error(`no js challenge but ${page.status} ${page.challenge}`);
    const answer = createHash('sha256').update(token).digest('hex');
    const form = new URLSearchParams({ t: token, a: answer, r: path }).toString();
    const verified = await this.request(edge, host, 'POST', '/.svc/challenge/verify', form);
    const cookie = verified.headers['set-cookie']?.find((each) => each.startsWith('__ew_pass='));
    if (verified.status !== 303 || !cookie) throw new Error(`the answer was not taken: ${verified.status}`);
    this.cookie = cookie.split(';', 1)[0]!;
    return verified;
  }

  close(): void {
    this.agent.destroy();
  }

  private async request(edge: Way, host: string, method: string, path: string, form?: string): Promise<Answer> {
    const headers = {
      'user-agent': USER_AGENT,
      [CLIENT_IP_HEADER]: this.address,
      ...(this.cookie === '' ? {} : { cookie: this.cookie }),
      ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
    };
    const answer =
      edge instanceof ProtocolClient
        ? await edge.ask(host, path, { method, headers, body: form })
        : await this.ask(edge, { method, path, headers: { host, ...headers } }, form);
    const { status, body } = answer;
    const cookies = [answer.headers['set-cookie'] ?? []].flat();
    return {
      status,
      challenge: String(answer.headers['x-svc-challenge'] ?? ''),
      error: String(answer.headers['x-svc-error'] ?? ''),
      headers: { ...answer.headers, 'set-cookie': cookies },
      body,
    };
  }

  private ask(
    edge: Address,
    options: http.RequestOptions,
    form?: string,
  ): Promise<{ status: number; headers: http.IncomingHttpHeaders; body: string }> {
    return new Promise((resolve, reject) => {
      const call = http.request({ ...edge, ...options, agent: this.agent, timeout: 10_000 }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
        response.on('error', reject);
      });
      call.on('timeout', () => call.destroy(new Error('the edge does not answer')));
      call.on('error', reject);
      call.end(form);
    });
  }
}

/** Requests from many addresses, `perSecond` of them, until it is stopped. Failed ones are part of a flood. */
export function flood(edge: Address, host: string, perSecond: number, path = '/'): { stop(): void } {
  const visitors = Array.from({ length: 16 }, (_, index) => new Visitor(`198.51.100.${index + 1}`));
  let next = 0;
  const timer = setInterval(() => {
    const visitor = visitors[next++ % visitors.length]!;
    void visitor.get(edge, host, path).catch(() => undefined);
  }, 1000 / perSecond);
  return {
    stop: () => {
      clearInterval(timer);
      for (const visitor of visitors) visitor.close();
    },
  };
}

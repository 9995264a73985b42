import http from 'node:http';

export interface EdgeAnswer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}

/** One GET through an edge on a connection of its own; rejects when the connection fails. */
export function edgeGet(
  edge: { host: string; port: number },
  host: string,
  headers: Record<string, string> = {},
  path = '/',
): Promise<EdgeAnswer> {
  return edgeSend(edge, host, { headers, path });
}

/** The same with a method and a body. */
export function edgeSend(
  edge: { host: string; port: number },
  host: string,
  {
    headers,
    body,
    timeoutMs = 5000,
    ...rest
  }: { headers?: Record<string, string>; path?: string; method?: string; body?: string; timeoutMs?: number },
): Promise<EdgeAnswer> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { ...edge, ...rest, headers: { ...headers, host }, agent: false, timeout: timeoutMs },
      (response) => {
        let received = '';
        response.setEncoding('utf8').on('data', (text: string) => {
          received += text;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: received }),
        );
        response.on('error', reject);
      },
    );
    request.on('timeout', () => request.destroy(new Error('the edge does not answer')));
    request.on('error', reject);
    request.end(body);
  });
}

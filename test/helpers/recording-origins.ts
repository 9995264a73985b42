// Origins that write down what they are asked: the readers whose opinion on where a request ends counts.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { freePort, startServer } from '../../bench/lib/servers.ts';

export interface Asked {
  method: string;
  target: string;
  host: string;
  /** latin1. */
  body: string;
}

export interface RecordingOrigin {
  port: number;
  /** Every whole request so far. */
  asked(): Asked[];
  /** What it could not read, and headers that divide a request in two ways. */
  faults(): string[];
  stop(): Promise<void>;
}

/** Node's own server. */
export async function startNodeOrigin(): Promise<RecordingOrigin> {
  const asked: Asked[] = [];
  const faults: string[] = [];
  const check = ({ rawHeaders, url }: IncomingMessage) => {
    const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
    const framing = names.filter((name) => name === 'content-length' || name === 'transfer-encoding');
    const hosts = names.filter((name) => name === 'host');
    if (framing.length > 1 || hosts.length !== 1) faults.push(`${url}: ${JSON.stringify(rawHeaders)}`);
  };
  const server = createServer((request, response) => {
    check(request);
    let body = '';
    request.setEncoding('latin1').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      asked.push({ method: request.method!, target: request.url!, host: request.headers.host ?? '', body });
      response.end('ok');
    });
    // A body that breaks off is no request.
    request.on('error', () => undefined);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code !== 'ECONNRESET' && error.code !== 'HPE_INVALID_EOF_STATE') faults.push(String(error));
    socket.destroy();
  });
  for (const event of ['upgrade', 'connect', 'checkContinue', 'checkExpectation']) {
    server.on(event, (request: IncomingMessage) => {
      faults.push(`${event} ${request.url}`);
      request.socket.destroy();
    });
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked: () => asked,
    faults: () => faults,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Logged extends Asked {
  status: number;
  whole: string;
  encoding: string;
}

/** nginx, which asks itself once more: only what it passes on does it read to the end. */
export async function startNginxOrigin(folder: string): Promise<RecordingOrigin> {
  mkdirSync(folder, { recursive: true });
  const [port, inner] = [await freePort(), await freePort()];
  const log = join(folder, 'asked.log');
  const file = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  writeFileSync(log, '');
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr crit;
events {}
http {
  ${temporary.join(' ')}
  client_body_buffer_size 1m; client_body_in_single_buffer on;
  log_format asked escape=json '{"status":$status,"method":"$request_method","target":"$request_uri","host":"$http_host","body":"$request_body","whole":"$request_completion","encoding":"$http_transfer_encoding"}';
  server {
    listen 127.0.0.1:${port}; access_log ${log} asked;
    location / { proxy_pass http://127.0.0.1:${inner}; }
  }
  server { listen 127.0.0.1:${inner}; access_log off; location / { return 200 ok; } }
}
`,
  );
  // Asked with no request, which would stand in the log.
  const server = await startServer('nginx', '0-63', ['nginx', '-c', file, '-p', folder], port, () => accepts(port));
  const lines = () =>
    readFileSync(log, 'latin1')
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line) as Logged);
  return {
    port,
    asked: () => lines().filter(({ status, whole }) => status === 200 && whole === 'OK'),
    faults: () =>
      lines()
        // An upload that breaks off is no fault: nginx answers it with 400.
        .filter(({ status, whole, encoding }) => status !== 200 && (whole === 'OK' || encoding !== 'chunked'))
        .map((line) => JSON.stringify(line)),
    stop: () => server.stop(),
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

// Drives wrk and reads its figures as data. wrk is Debian's package; it never runs on the cores of its subject.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

export interface WrkRun {
  requests: number;
  seconds: number;
  rps: number;
  p50Ms: number;
  p99Ms: number;
  /** Answers with another status than 2xx and 3xx, and failed connections, reads, writes and time-outs. */
  unexpected: number;
}

export interface WrkOptions {
  url: string;
  seconds: number;
  connections: number;
  threads?: number;
  /** How long wrk waits for an answer; 2 without it. */
  timeoutSeconds?: number;
  /** CPU list for taskset, such as "1". */
  cpus?: string;
  /** Host headers to go round; the requests are made before the run. */
  hosts?: readonly string[];
  method?: string;
  headers?: Record<string, string>;
  /** Lua that defines \`request\`, instead of what the other options would make. */
  script?: string;
}

const DIFFERENT_REQUESTS = 10_000;

const DONE = `
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("WRK %d %d %f %f %d\\n", summary.requests, summary.duration, latency:percentile(50),
    latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
`;

/** One run; `folder` takes the script. */
export async function wrk(folder: string, options: WrkOptions): Promise<WrkRun> {
  const script = path.join(folder, `wrk-${process.pid}-${Math.random().toString(36).slice(2)}.lua`);
  writeFileSync(script, `${requestScript(options)}${DONE}`);
  const wrkArguments = [
    `-t${options.threads ?? 1}`,
    `-c${options.connections}`,
    `-d${options.seconds}s`,
    ...(options.timeoutSeconds ? ['--timeout', `${options.timeoutSeconds}s`] : []),
    '-s',
    script,
    ...Object.entries(options.headers ?? {}).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    options.url,
  ];
  const output = options.cpus
    ? await capture('taskset', ['-c', options.cpus, 'wrk', ...wrkArguments])
    : await capture('wrk', wrkArguments);
  const match = /^WRK (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)$/m.exec(output);
  if (!match) throw new Error(`wrk said something else: ${output.slice(0, 500)}`);
  const requests = Number(match[1]);
  const seconds = Number(match[2]) / 1e6;
  return {
    requests,
    seconds,
    rps: requests / seconds,
    p50Ms: Number(match[3]) / 1000,
    p99Ms: Number(match[4]) / 1000,
    unexpected: Number(match[5]),
  };
}

function requestScript({ hosts, method, script }: WrkOptions): string {
  if (script) return script;
  if (!hosts || hosts.length === 0) return method ? `wrk.method = "${method}"\n` : '';
  const pattern = /^[a-z0-9.-]+$/;
  if (!hosts.every((host) => pattern.test(host))) throw new Error('host names of a benchmark are plain');
  return `
local hosts = {${hosts.map((host) => `"${host}"`).join(',')}}
local ready = {}
local at = 0
init = function()
  -- As many different requests whatever the number of hosts, so that making them costs wrk the same.
  for i = 1, ${DIFFERENT_REQUESTS} do
    wrk.headers["Host"] = hosts[(i - 1) % #hosts + 1]
    wrk.headers["X-Visit"] = tostring(i)
    ready[i] = wrk.format("${method ?? 'GET'}", nil, wrk.headers)
  end
end
request = function()
  at = at % #ready + 1
  return ready[at]
end
`;
}

function capture(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 ? resolve(output) : reject(new Error(`${program} ended with ${code}`))));
  });
}

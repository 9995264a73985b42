// Requests with access keys, none of which meets the rate limit: a key takes 600 in a row and is left before that.
import { type WrkRun, wrk } from './wrk.ts';

export const CONNECTIONS = 32;
const REQUESTS_PER_KEY = 580;

/** Gives each run keys of its own, so that none meets the rate limit. */
export class KeyPool {
  readonly #keys: string[];
  #block = 0;

  constructor(keys: string[]) {
    this.#keys = [...keys];
  }

  /** A number no earlier run had: makes the addresses of bans unique. */
  nextBlock(): number {
    return this.#block++;
  }

  async run(folder: string, seconds: number, request: { url: string; method: string; body: string }): Promise<WrkRun> {
    // At most 5,000 requests a second; what a run did not touch goes back.
    const wanted = Math.ceil((5000 * seconds) / REQUESTS_PER_KEY);
    const mine = this.#keys.splice(0, wanted);
    if (mine.length === 0) throw new Error('the pool of access keys is empty');
    const result = await wrk(folder, {
      url: request.url,
      seconds,
      connections: CONNECTIONS,
      cpus: '1',
      script: keyScript(mine, request),
    });
    this.#keys.push(...mine.slice(Math.ceil((result.requests + CONNECTIONS) / REQUESTS_PER_KEY)));
    return result;
  }
}

function keyScript(keys: readonly string[], request: { method: string; body: string }): string {
  return `
local keys = {${keys.map((key) => `"${key}"`).join(',')}}
local n = 0
request = function()
  local key = keys[math.floor(n / ${REQUESTS_PER_KEY}) % #keys + 1]
  local body = ${request.body}
  n = n + 1
  wrk.headers["x-api-key"] = key
  if body then wrk.headers["content-type"] = "application/json" end
  return wrk.format("${request.method}", nil, wrk.headers, body)
end
`;
}

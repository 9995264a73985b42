// A call as a person would make it from a shell: any text survives quotes, emoji and line ends.
import { pathInputs } from '../../../../contract/procedure.ts';

export interface ApiCall {
  method: string;
  /** With the query, below the console's address. */
  path: string;
  /** Undefined for GET and DELETE. */
  body: string | undefined;
  curl: string;
}

interface Described {
  method: string;
  path: string;
}

/** One word for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The public API's form of a procedure's call with its input. */
export function apiCall(
  { method, path }: Described,
  input: Readonly<Record<string, unknown>>,
  origin: string,
): ApiCall {
  const inPath = pathInputs(path);
  const rest = Object.entries(input).filter(([name, value]) => !inPath.includes(name) && value !== undefined);
  const filled = path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(input[name])));
  const readsQuery = method === 'GET' || method === 'DELETE';
  const query = new URLSearchParams(
    readsQuery ? rest.map(([name, value]): [string, string] => [name, String(value)]) : [],
  ).toString();
  const target = `/api/v1${filled}${query ? `?${query}` : ''}`;
  const body = readsQuery ? undefined : JSON.stringify(Object.fromEntries(rest), null, 2);
  const parts = [
    `curl --fail-with-body -X ${method} ${shellWord(origin + target)}`,
    `-H "x-api-key: $SVC_KEY"`,
    ...(body === undefined ? [] : [`-H 'content-type: application/json'`, `--data-binary ${shellWord(body)}`]),
  ];
  return { method, path: target, body, curl: parts.join(' \\\n  ') };
}

// The Web UI: files of console/dist with a fallback to its page, or a small page of our own while it is not built. Each
// text file lies beside its brotli and gzip variant, made by the build; here one is only chosen.
import { realpath } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { sendContent } from './file-answer.ts';
import { type OpenedFile, openInside } from './inside.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
};

/** Names of files and folders as a build makes them; no dot files, no encodings. */
const FILE_PATH = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/;

const PLAIN_PAGE =
  `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" ` +
  `content="width=device-width, initial-scale=1"><title>Edge Delivery ` +
  `Console</title></head>
<body>
<h1>Edge Delivery Console</h1>
<p>This console is running. This ` +
  `installation contains its API, but not its pages.</p>
<ul>
<li><a ` +
  `href="/api/v1/openapi.json">OpenAPI document</a></li>
<li><a ` +
  `href="/healthz">Health</a></li>
</ul>
</body>
</html>
`;

export interface StaticFiles {
  /** Answers a GET or HEAD; false when there is nothing to answer. */
  serve(request: IncomingMessage, response: ServerResponse, path: string, headers: readonly string[]): Promise<boolean>;
}

const ASSETS = '/assets/';
/** Content codings of the variants, the smaller one first. */
const VARIANTS = [
  { coding: 'br', extension: '.br' },
  { coding: 'gzip', extension: '.gz' },
] as const;

/** A dot that is not between digits: files have one, pages do not, but an address may be part of a page's path. */
const DOT_OF_A_FILE = /(?<![0-9])[.]|[.](?![0-9])/;

/** Serves a folder; a path without an extension is a page of the UI and gets its index, except below /assets/. */
export async function staticFiles(folder: string): Promise<StaticFiles> {
  const root = await realpath(folder).catch(() => null);
  return {
    async serve(request, response, path, headers) {
      // A missing asset belongs to another build; a page in its place would be run as a script.
      const wantsPage = !DOT_OF_A_FILE.test(path) && !path.startsWith(ASSETS);
      if (root === null) return wantsPage ? sendPlainPage(request, response, headers) : false;
      const file = FILE_PATH.test(path) ? join(root, path) : null;
      if (file && (await sendFile(request, response, root, file, path, headers))) return true;
      return wantsPage && (await sendFile(request, response, root, join(root, 'index.html'), '/', headers));
    },
  };
}

function sendPlainPage(request: IncomingMessage, response: ServerResponse, headers: readonly string[]): boolean {
  writeHead(response, headers, TYPES['.html']!, Buffer.byteLength(PLAIN_PAGE), false);
  response.end(request.method === 'HEAD' ? undefined : PLAIN_PAGE);
  return true;
}

async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  root: string,
  file: string,
  path: string,
  headers: readonly string[],
): Promise<boolean> {
  const found = await openVariant(root, file, acceptedCodings(request.headers['accept-encoding']));
  if (found === null) return false;
  const { handle, size, coding } = found;
  const type = TYPES[extname(file)] ?? 'application/octet-stream';
  const varied = [...headers, 'vary', 'accept-encoding', ...(coding ? ['content-encoding', coding] : [])];
  writeHead(response, varied, type, size, path.startsWith(ASSETS));
  if (request.method === 'HEAD') {
    response.end();
    await handle.close();
  } else await sendContent(handle, response, 0, size);
  return true;
}

/** Codings a client takes; one with q=0 is refused by it. */
export function acceptedCodings(header: string | string[] | undefined): ReadonlySet<string> {
  const taken = new Set<string>();
  for (const part of String(header ?? '').split(',')) {
    // Not split by a pattern with blanks around: that looks at a run of them again from each.
    const [coding = '', ...parameters] = part
      .toLowerCase()
      .split(';')
      .map((word) => word.trim());
    const refused = parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
    if (coding !== '' && !refused) taken.add(coding);
  }
  return taken;
}

async function openVariant(
  root: string,
  file: string,
  taken: ReadonlySet<string>,
): Promise<(OpenedFile & { coding: string | null }) | null> {
  for (const { coding, extension } of VARIANTS) {
    const variant = taken.has(coding) ? await openInside(root, file + extension) : null;
    if (variant) return { ...variant, coding };
  }
  const plain = await openInside(root, file);
  return plain && { ...plain, coding: null };
}

function writeHead(
  response: ServerResponse,
  headers: readonly string[],
  type: string,
  size: number,
  immutable: boolean,
): void {
  response.writeHead(200, [
    ...headers,
    'content-type',
    type,
    'content-length',
    String(size),
    'cache-control',
    // Names of assets carry a hash of their content.
    immutable ? 'public, max-age=31536000, immutable' : 'no-store',
  ]);
}

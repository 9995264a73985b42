// /downloads/*: files of one folder for machines that become nodes. Small texts and archives as they are, without a
// session, without a listing.
import { realpath } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { sendJson } from './answer.ts';
import { byteRange } from './byte-range.ts';
import { sendContent } from './file-answer.ts';
import { type OpenedFile, openInside } from './inside.ts';

export const DOWNLOADS = '/downloads/';

/** Names as they lie in the folder: neither dot files nor encodings nor anything that leads upwards. */
const FILE_PATH = /^(?:\/[A-Za-z0-9_][A-Za-z0-9._+~-]*)+$/;

const CACHING = [
  { path: /^\/[^/]+\/latest$/, value: 'no-cache' },
  // What a version holds does not change.
  { path: /^\/[^/]+\/v[0-9]+\.[0-9]+\.[0-9]+(?:[-+][^/]+)?\/[^/]+$/, value: 'public, max-age=86400, immutable' },
] as const;

const TYPES: Readonly<Record<string, string>> = {
  '': 'application/octet-stream',
  '.txt': 'text/plain; charset=utf-8',
  '.sha256': 'text/plain; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.gz': 'application/gzip',
};

export interface Downloads {
  /** Answers a GET or HEAD of a path below /downloads/; false when there is nothing there. */
  serve(request: IncomingMessage, response: ServerResponse, path: string, headers: readonly string[]): Promise<boolean>;
}

/** Serves a folder; null serves nothing. The folder may come into being later. */
export function downloads(folder: string | null): Downloads {
  return {
    async serve(request, response, path, headers) {
      const inside = path.slice(DOWNLOADS.length - 1);
      if (folder === null || !FILE_PATH.test(inside)) return false;
      const root = await realpath(folder).catch(() => null);
      const file = root === null ? null : await openInside(root, join(root, inside));
      if (file === null) return false;
      await answer(request, response, inside, file, headers);
      return true;
    },
  };
}

async function answer(
  { method, headers: asked }: IncomingMessage,
  response: ServerResponse,
  path: string,
  { handle, size, modifiedNs }: OpenedFile,
  base: readonly string[],
): Promise<void> {
  const etag = `"${size.toString(16)}-${modifiedNs.toString(16)}"`;
  const modified = new Date(Number(modifiedNs / 1_000_000n)).toUTCString();
  const cacheControl = CACHING.find((rule) => rule.path.test(path))?.value ?? 'no-store';
  const headers = [...base, 'cache-control', cacheControl, 'etag', etag, 'last-modified', modified];
  headers.push('accept-ranges', 'bytes');
  const range =
    method === 'GET' && sameVersion(asked['if-range'], etag, modified) ? byteRange(asked.range, size) : null;
  if (unchanged(asked, etag, modified)) {
    response.writeHead(304, headers).end();
    return handle.close();
  }
  if (range === 'unsatisfiable') {
    sendJson(response, 416, '{"error":"range_not_satisfiable"}', base, 'content-range', `bytes */${size}`);
    return handle.close();
  }
  const { start, length } = range ?? { start: 0, length: size };
  headers.push('content-type', typeOf(path), 'content-length', String(length));
  if (range !== null) headers.push('content-range', `bytes ${start}-${start + length - 1}/${size}`);
  response.writeHead(range === null ? 200 : 206, headers);
  if (method === 'GET') return sendContent(handle, response, start, length);
  response.end();
  return handle.close();
}

function typeOf(path: string): string {
  return TYPES[path.endsWith('/latest') ? '.txt' : extname(path)] ?? TYPES['']!;
}

/** Whether the client has this content already; If-Modified-Since counts only without If-None-Match. */
function unchanged(asked: IncomingHttpHeaders, etag: string, modified: string): boolean {
  const known = asked['if-none-match'];
  if (known !== undefined) {
    const tags = known.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
    return tags.includes('*') || tags.includes(etag);
  }
  const since = Date.parse(asked['if-modified-since'] ?? '');
  return since >= Date.parse(modified);
}

/** If-Range: parts of another version must not be put together. */
function sameVersion(header: string | string[] | undefined, etag: string, modified: string): boolean {
  return header === undefined || header === etag || header === modified;
}

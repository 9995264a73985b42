// Headers of requests that must not be ambiguous, and headers of every answer.
import type { IncomingMessage } from 'node:http';
import { badField } from '../../contract/errors.ts';

// A second value of these could mean another thing to whoever stands in front.
const SINGLE = new Set([
  'x-api-key',
  'x-csrf-token',
  'idempotency-key',
  'content-type',
  'content-length',
  'content-encoding',
  'authorization',
  'host',
  'origin',
]);

/** Refuses a request that carries one of these headers twice. */
export function refuseRepeatedHeaders(request: IncomingMessage): void {
  const { rawHeaders } = request;
  let seen: string[] | null = null;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (seen === null) seen = [name];
    else if (seen.includes(name)) badField(`/headers/${name}`, 'repeated');
    else seen.push(name);
  }
}

const JSON_POLICY = "default-src 'none'; frame-ancestors 'none'";
/** Policy of the pages of the Web UI. */
export const PAGE_POLICY =
  "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; " +
  "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
  // Texts never become markup: Vue's own policy is for its compiled templates, the console's for the address of its worker.
  "require-trusted-types-for 'script'; trusted-types vue svc-console";

/**
 * Policy of the frame in which pages of the Web UI show HTML that an operator wrote: it may have styles, runs no script and
 * loads nothing. Those pages fill it in, so it keeps their origin.
 */
const PREVIEW_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'self'; sandbox allow-same-origin";

export interface AnswerHeaders {
  /** Name, value, name, value …: for JSON and everything else that is no page. */
  json: readonly string[];
  page: readonly string[];
  preview: readonly string[];
}

/** Headers that every answer of this console carries, Cache-Control apart. */
export function answerHeaders(publicUrl: string): AnswerHeaders {
  const everywhere = [
    'x-content-type-options',
    'nosniff',
    'referrer-policy',
    'no-referrer',
    'cross-origin-opener-policy',
    'same-origin',
    'cross-origin-resource-policy',
    'same-origin',
  ];
  if (publicUrl.startsWith('https:')) everywhere.push('strict-transport-security', 'max-age=31536000');
  const common = [...everywhere, 'x-frame-options', 'DENY'];
  return {
    json: [...common, 'content-security-policy', JSON_POLICY],
    page: [...common, 'content-security-policy', PAGE_POLICY],
    preview: [...everywhere, 'x-frame-options', 'SAMEORIGIN', 'content-security-policy', PREVIEW_POLICY],
  };
}

// Signatures of requests to AWS (Signature Version 4).
import { createHash, createHmac } from 'node:crypto';

export interface AwsKey {
  id: string;
  secret: string;
  token: string | undefined;
  region: string;
}

const SERVICE = 'route53';
const ALGORITHM = 'AWS4-HMAC-SHA256';

/** Headers to send with the request. `time`: as 20260101T000000Z. */
export function signAws(
  key: AwsKey,
  { method, url, body, time }: { method: string; url: URL; body: string; time: string },
): Record<string, string> {
  const day = time.slice(0, 8);
  const headers: Record<string, string> = { host: url.host, 'x-amz-date': time };
  if (key.token !== undefined) headers['x-amz-security-token'] = key.token;
  const names = Object.keys(headers).sort();
  const query = [...url.searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
  const listed = names.map((name) => `${name}:${headers[name]}\n`).join('');
  const canonical = [method, url.pathname, query, listed, names.join(';'), sha256(body)].join('\n');
  const scope = `${day}/${key.region}/${SERVICE}/aws4_request`;
  const steps = [day, key.region, SERVICE, 'aws4_request'];
  const signing = steps.reduce<string | Buffer>((secret, text) => hmac(secret, text), `AWS4${key.secret}`);
  const signature = hmac(signing, [ALGORITHM, time, scope, sha256(canonical)].join('\n')).toString('hex');
  const { host: _host, ...sent } = headers;
  const authorization = `${ALGORITHM} Credential=${key.id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return { ...sent, authorization };
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

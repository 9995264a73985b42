// One POST to a service that receives messages, at addresses that the policy allows.
import { OutboundFailed, sendOutbound } from '../../../runtime/outbound.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { SendFailed } from '../send-failed.ts';
import { SEND_MS } from '../sender.ts';

const MAX_REQUEST_BYTES = 32 * 1024;
const MAX_ANSWER_BYTES = 64 * 1024;

/** Sends JSON and returns what a 2xx response says; throws {@link SendFailed} for any other. Redirects are not followed. */
export async function postJson(
  { env }: Pick<Runtime, 'env'>,
  url: URL,
  value: unknown,
  headersOf: (body: string) => Readonly<Record<string, string>> = () => ({}),
): Promise<string> {
  const body = JSON.stringify(value);
  if (Buffer.byteLength(body) > MAX_REQUEST_BYTES) throw new SendFailed('too_large');
  const { status, body: answer } = await sendOutbound({
    url,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOf(body) },
    body,
    allow: env.outboundAllow,
    timeoutMs: SEND_MS,
    maxBytes: MAX_ANSWER_BYTES,
  }).catch((error: unknown) => {
    throw error instanceof OutboundFailed ? new SendFailed(error.reason, error) : error;
  });
  if (status < 200 || status > 299)
    throw new SendFailed(status === 401 || status === 403 ? 'authentication' : 'status');
  return answer.toString();
}

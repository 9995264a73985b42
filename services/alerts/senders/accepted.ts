import { SendFailed } from '../send-failed.ts';

/** Services that refuse with status 200 say so in JSON. Throws {@link SendFailed} unless it says that the message was taken. */
export function assertAccepted(answer: string, accepted: (said: Readonly<Record<string, unknown>>) => boolean): void {
  let said: unknown;
  try {
    said = JSON.parse(answer);
  } catch {
    throw new SendFailed('rejected');
  }
  if (typeof said !== 'object' || said === null || !accepted(said as Record<string, unknown>))
    throw new SendFailed('rejected');
}

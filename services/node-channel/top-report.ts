// Entries of top lists that make sense. Their keys come from visitors, through nodes that are not trusted.
import { isIP } from 'node:net';
import { TopList } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { CodedTop } from './decode-stats.ts';

/** Entries of all lists of one site in one minute: 20 of each list, 64 countries. */
export const MAX_TOPS = 144;
const MAX_KEY = 512;
const MAX_REQUESTS = 10_000_000_000;
const MAX_BYTES = 1_000_000_000_000_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const COUNTRY = /^[A-Z]{2}$/;
const NETWORK = /^\d{1,10}( |$)/;

export function isPossibleTop({ list, key, requests, bytesSent }: CodedTop): boolean {
  return (
    requests > 0 &&
    requests <= MAX_REQUESTS &&
    bytesSent <= MAX_BYTES &&
    key !== '' &&
    key.length <= MAX_KEY &&
    !UNPRINTABLE.test(key) &&
    isKeyOf(list, key)
  );
}

function isKeyOf(list: number, key: string): boolean {
  switch (list) {
    case TopList.URL:
    case TopList.REFERRER:
      return true;
    case TopList.ADDRESS:
      return isIP(key) !== 0;
    case TopList.COUNTRY:
      return COUNTRY.test(key);
    case TopList.NETWORK:
      return NETWORK.test(key);
  }
  return false;
}

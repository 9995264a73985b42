// What the address asks for, as the list of events takes it. Pure.
import { parseCidr } from '../../../../contract/scalars/cidr.ts';

interface Asked {
  range?: string;
  verdict?: string;
  rule?: string;
  request?: string;
  path?: string;
  address?: string;
  page: number;
  pageSize: number;
}

/** Half an id of a rule, or half an address, asks for none: it narrows nothing until it is whole. */
export function eventsInput({
  range,
  verdict,
  rule = '',
  request,
  path,
  address,
  page,
  pageSize,
}: Asked): Record<string, unknown> {
  return {
    page,
    pageSize,
    ...(range ? { range } : {}),
    ...(verdict ? { blocked: verdict === 'blocked' } : {}),
    ...(/^9\d{5}$/.test(rule) ? { ruleId: Number(rule) } : {}),
    ...(path?.startsWith('/') ? { path } : {}),
    ...(address && parseCidr(address) ? { address } : {}),
    ...(request && /^[!-~]+$/.test(request) ? { requestId: request } : {}),
  };
}

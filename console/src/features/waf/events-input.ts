// What the address asks for, as the list of events takes it. Pure.
interface Asked {
  range?: string;
  verdict?: string;
  rule?: string;
  request?: string;
  page: number;
  pageSize: number;
}

/** Half an id of a rule asks for none: it narrows nothing until it is whole. */
export function eventsInput({ range, verdict, rule = '', request, page, pageSize }: Asked): Record<string, unknown> {
  return {
    page,
    pageSize,
    ...(range ? { range } : {}),
    ...(verdict ? { blocked: verdict === 'blocked' } : {}),
    ...(/^9\d{5}$/.test(rule) ? { ruleId: Number(rule) } : {}),
    ...(request && /^[!-~]+$/.test(request) ? { requestId: request } : {}),
  };
}

import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  SITE_NOT_FOUND: entry(404, 'There is no such site.'),
  SITE_DISABLED: entry(409, 'The site is disabled.'),
  DOMAIN_IN_USE: entry(409, 'A domain belongs to another site.'),
  DOMAIN_INVALID: entry(400, 'Not a valid domain; see data.domain.'),
  ORIGIN_ADDRESS_FORBIDDEN: entry(400, 'The origin is a special-purpose address outside the origin allow list.'),
  ORIGIN_HOST_HEADER_INVALID: entry(400, 'The host header of an origin is not valid.'),
  ORIGIN_GRPC_REQUIRES_HTTP2: entry(400, 'gRPC needs protocol http2.'),
} satisfies ErrorEntries;

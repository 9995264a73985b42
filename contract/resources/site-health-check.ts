// Checks that nodes make of the origins of a site.
import Type, { type Static } from 'typebox';

const Status = { minimum: 100, maximum: 599 };
const Threshold = { minimum: 1, maximum: 10 };

const fields = {
  enabled: Type.Boolean({ description: 'Whether every node checks each origin. Default false.' }),
  path: Type.String({
    minLength: 1,
    maxLength: 1024,
    // Printable ASCII without blanks and "#".
    pattern: '^/[!"$-~]*$',
    description: 'Path and query that the check requests. Default /. Example: /healthz.',
  }),
  method: Type.Union([Type.Literal('GET'), Type.Literal('HEAD')], { description: 'Default GET.' }),
  expectedStatusMin: Type.Integer({
    ...Status,
    description: 'Lowest status of a healthy response. Redirects are not followed. Default 200.',
  }),
  expectedStatusMax: Type.Integer({
    ...Status,
    description: 'Highest status of a healthy response, not below `expectedStatusMin`. Default 399.',
  }),
  host: Type.String({
    maxLength: 1024,
    description:
      'Host header of the check: a host name or IP address with an optional port; empty: `hostHeader` of the ' +
      'origin, else its address. International names are stored as punycode. Default empty.',
  }),
  intervalSeconds: Type.Integer({
    minimum: 5,
    maximum: 300,
    description: 'Time between two checks of an origin by one node, in seconds. Default 30.',
  }),
  timeoutSeconds: Type.Integer({
    minimum: 1,
    maximum: 60,
    description: 'How long a check may take in all, in seconds, not above `intervalSeconds`. Default 5.',
  }),
  healthyThreshold: Type.Integer({
    ...Threshold,
    description: 'Consecutive passed checks after which an origin is up again. Default 2.',
  }),
  unhealthyThreshold: Type.Integer({
    ...Threshold,
    description: 'Consecutive failed checks after which an origin is down. Default 3.',
  }),
};
const check = {
  default: {
    enabled: false,
    path: '/',
    method: 'GET',
    expectedStatusMin: 200,
    expectedStatusMax: 399,
    host: '',
    intervalSeconds: 30,
    timeoutSeconds: 5,
    healthyThreshold: 2,
    unhealthyThreshold: 3,
  },
  description:
    'Checks that nodes make by themselves. On a site that enables them, nodes need the capability ' +
    '`active-health-v1`. An update keeps omitted fields.',
};

export const ActiveHealthCheck = Type.Object(fields, check);
export type ActiveHealthCheck = Static<typeof ActiveHealthCheck>;
export const ActiveHealthCheckInput = Type.Partial(Type.Object(fields), { ...check, additionalProperties: false });

// The test of an origin as a task for a node.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { OriginTest } from '../../contract/resources/origin-test.ts';
import type { NodeTaskKind } from '../../mixins/node-task.ts';
import { OriginTestInputSchema, OriginTestOutputSchema } from '../../proto/gen/svc/node/v1/tasks_pb.js';
import { FAILURES } from '../../proto/origin-test/failures.ts';
import { STEPS, type TestedOrigin } from '../../proto/origin-test/test-origin.ts';

/** Above the time of the test itself, by the ways to the node and back. */
const LONGEST_MS = 9_000;

/** The node applies the origin allow list that it has. */
export type NodeOriginTest = Omit<TestedOrigin, 'allow'>;

export const originTestTask: NodeTaskKind<NodeOriginTest, OriginTest> = {
  name: 'origin-test',
  leaseMs: LONGEST_MS,
  expireMs: LONGEST_MS,
  codes: [],
  encode: ({ origin, host, path, tlsVerify, protocol, timeoutMs }) => {
    const { address, scheme, port, hostHeader, sni } = origin;
    const input = { address, tls: scheme === 'https', port, hostHeader, sni, host, path, tlsVerify, timeoutMs };
    return toBinary(OriginTestInputSchema, create(OriginTestInputSchema, { ...input, http2: protocol === 'http2' }));
  },
  decode: (output) => {
    const { steps, address, range, status } = fromBinary(OriginTestOutputSchema, output);
    return {
      steps: steps.slice(0, STEPS.length).map(({ step, milliseconds, failure }) => ({
        step: wordOf(STEPS, step),
        milliseconds,
        failure: failure === '' ? null : wordOf(FAILURES, failure),
      })),
      address: address === '' ? null : address,
      range: range === '' ? null : range,
      status: status === 0 ? null : status,
    };
  },
};

function wordOf<T extends string>(words: readonly T[], given: string): T {
  const known = words.find((word) => word === given);
  if (known === undefined) throw new Error('the node reported an unknown word');
  return known;
}

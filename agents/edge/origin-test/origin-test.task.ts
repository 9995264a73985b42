// The test of an origin from this node, under the address policy that its requests are under.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { OriginTestInputSchema, OriginTestOutputSchema } from '../../../proto/gen/svc/node/v1/tasks_pb.js';
import { testOrigin } from '../../../proto/origin-test/test-origin.ts';
import type { TaskKind } from '../tasks/task-kind.ts';
import { originPolicyPart } from './origin-policy.part.ts';

const LONGEST_MS = 30_000;

export const originTestTask: TaskKind = {
  name: 'origin-test',
  make: (node) => {
    const policy = node.of(originPolicyPart);
    return async (bytes) => {
      const input = fromBinary(OriginTestInputSchema, bytes);
      const { address, port, hostHeader, sni, host, path, tlsVerify } = input;
      const { steps, status, ...found } = await testOrigin({
        origin: { address, port, hostHeader, sni, scheme: input.tls ? 'https' : 'http' },
        host,
        path,
        tlsVerify,
        protocol: input.http2 ? 'http2' : 'http1',
        allow: policy.allowed,
        timeoutMs: Math.min(input.timeoutMs, LONGEST_MS),
      });
      const output = create(OriginTestOutputSchema, {
        steps: steps.map((step) => ({ ...step, failure: step.failure ?? '' })),
        address: found.address ?? '',
        range: found.range ?? '',
        status: status ?? 0,
      });
      return toBinary(OriginTestOutputSchema, output);
    };
  },
};

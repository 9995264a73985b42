// A node that keeps nothing but how many bytes each pushed revision came in.
import { once } from 'node:events';
import { Connection } from '../fleet/connection.ts';
import { createDecoder } from '../fleet/decode.ts';
import { enrollNodes } from '../fleet/enroll-nodes.ts';
import type { Installation } from './stack.ts';

/** Of a message in the stream, before its bytes: flags and length. */
const ENVELOPE_BYTES = 5;

export interface PushSizes {
  /** Bytes of the message by the revision it leads to. */
  bytes: ReadonlyMap<string, number>;
  stop(): void;
}

/** Enrolls the node and waits for its stream; pushes from then on are counted. */
export async function startPushSizes({ facts, client }: Installation): Promise<PushSizes> {
  const newToken = () =>
    client.rpc<{ token: string; caSha256: string }>('enrollmentTokens.create', {
      clusterId: facts.clusterId,
      nodeName: 'counts-bytes',
    });
  const [identity] = await enrollNodes(1, facts.nodeApiUrl, newToken, ['partial-config-v1', 'rules-v1', 'rules-v2']);
  const connection = new Connection(facts.nodeApiUrl, identity!.authorityPem, identity!);
  const decode = createDecoder();
  const bytes = new Map<string, number>();
  const stream = connection.watch(
    {},
    (message) => {
      const event = decode(message);
      if (event.case !== 'configDelta') return;
      bytes.set(event.value.revision.toString(), ENVELOPE_BYTES + message.length);
    },
    () => undefined,
  );
  await once(stream, 'data');
  return { bytes, stop: () => connection.destroy() };
}

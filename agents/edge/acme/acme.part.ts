import type { AcmePosition } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { Part, PartKind } from '../lib/part.ts';
import { clockPart } from '../run/clock.part.ts';
import { AcmeAnswers } from './acme-answers.ts';

/** Validations of certificate authorities that the data plane answers. */
export const acmePart: PartKind = {
  name: 'acme',
  make: (node, { client }): Part => {
    const acme = new AcmeAnswers({
      client,
      clock: node.of(clockPart).clock,
      log: node.log,
      channel: node.channel,
      applied: (acme) => {
        // A certificate authority waits for it.
        const { epoch, sequence: number } = acme;
        const write = (request: { acme?: AcmePosition }) => Object.assign(request, { acme });
        node.tell({ case: 'reached', feed: 'acme', epoch, number, urgent: true, write });
      },
    });
    return {
      status: (report) => {
        if (acme.applied) report.heartbeat.acme = acme.applied;
        if (acme.position) report.positions.acme = acme.position;
        report.problem('feature', acme.message);
      },
      event: (event) => {
        if (event.case === 'acmeBatch') acme.onBatch(event.value);
        else if (event.case === 'target' && event.value.acme) acme.onTarget(event.value.acme);
        else if (event.case === 'dataPlaneStatus') acme.onStatus(event.value);
        else if (event.case === 'connected') acme.onConnected();
      },
      stop: () => acme.stop(),
    };
  },
};

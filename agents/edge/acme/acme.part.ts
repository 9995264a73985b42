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
      applied: (position) => node.tell({ case: 'acmeApplied', position }),
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

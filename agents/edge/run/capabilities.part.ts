import type { Part, PartKind } from '../lib/part.ts';
import { NodeCapabilities } from './node-capabilities.ts';

/** What this node can do. */
interface CapabilitiesPart extends Part {
  readonly capabilities: NodeCapabilities;
}

export const capabilitiesPart: PartKind<CapabilitiesPart> = {
  name: 'capabilities',
  make: ({ options, log }) => {
    const capabilities = new NodeCapabilities(options.paths.capabilities, log);
    return {
      capabilities,
      event: (event) => {
        if (event.case === 'dataPlaneStatus') capabilities.observe(event.value.capabilities);
      },
      status: (report) => {
        const names = [...capabilities.names()];
        report.info.features = names;
        report.shown.features = names;
      },
    };
  },
};

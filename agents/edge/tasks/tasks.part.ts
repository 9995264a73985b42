import type { Capability } from '../../../contract/capabilities.ts';
import { TASK_KINDS } from '../gen/tasks.ts';
import type { Part, PartKind } from '../lib/part.ts';
import { capabilitiesPart } from '../run/capabilities.part.ts';
import { TaskRunner } from './task-runner.ts';

const TASKS: Capability = 'tasks-v1';

/** Tasks that the console has this node do. */
export const tasksPart: PartKind = {
  name: 'tasks',
  make: (node): Part => {
    const kinds = new Map(TASK_KINDS.map((kind) => [kind.name, kind.make(node)]));
    const runner = new TaskRunner({ kinds, channel: node.channel, log: node.log });
    node.of(capabilitiesPart).capabilities.offer(TASKS, () => true);
    return {
      event: (event) => {
        if (event.case === 'tasksPending') runner.request();
      },
      stop: () => runner.stop(),
    };
  },
};

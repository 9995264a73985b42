// The steps of the check as jobs of a test run.
import { type CheckStep, checkSteps } from '../check-steps.ts';
import { runStep } from '../run-check.ts';
import { costOf } from './costs.ts';
import type { Job } from './job.ts';

/** A job for each step that `chosen` takes. */
export function checkJobs(chosen: (step: CheckStep) => boolean = () => true): Job[] {
  return checkSteps.filter(chosen).map((step) => {
    const name = `check ${step.name}`;
    return {
      name,
      suite: 'check',
      cost: costOf('check', name),
      needs: step.needs ?? [],
      again: false,
      run: () => runStep(step),
    };
  });
}

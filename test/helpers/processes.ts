export { Processes } from '../../bin/lib/processes.ts';

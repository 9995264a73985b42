// What the demo tells a console of the edge that it builds, for stories that see it there.
export { reportEdgeBuild } from '../../bin/lib/edge-build-report.ts';

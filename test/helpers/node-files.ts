// Where a node keeps its files, and its data plane's socket, for stories that look at them or break them from outside.
export { EdgeClient } from '../../agents/edge/caddy/edge-client.ts';
export { edgePaths, runPaths } from '../../agents/edge/paths.ts';
export { existingRunFolders } from '../../agents/edge/run-folder.ts';

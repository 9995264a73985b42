// Builds the edge's Caddy when its sources have changed and prints the path of the binary:
//   node bin/bootstrap.mjs bin/build-edge.ts
import { buildCaddy } from './lib/caddy.ts';
import { report } from './lib/progress.ts';

try {
  console.log(await buildCaddy());
} catch (error) {
  report(error);
}

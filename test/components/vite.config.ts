// The console's build with other beginnings, and without what only a server needs: the shared parts, and the whole Web UI with
// made-up features in place of its own.
import { resolve } from 'node:path';
import { mergeConfig, type Plugin } from 'vite';
import consoleConfig from '../../console/vite.config.ts';

const needed = (plugin: unknown) => (plugin as Plugin | null)?.name !== 'compressed-variants';
const crowded: Plugin = {
  name: 'made-up-features',
  enforce: 'pre',
  resolveId: (id) => (id.endsWith('/installed.ts') ? resolve(import.meta.dirname, 'crowded/installed.ts') : null),
};

export default mergeConfig(
  { ...consoleConfig, plugins: [crowded, ...(consoleConfig.plugins?.filter(needed) ?? [])] },
  {
    build: {
      minify: false,
      rolldownOptions: {
        input: [resolve(import.meta.dirname, 'main.ts'), resolve(import.meta.dirname, '../../console/src/app/main.ts')],
      },
    },
  },
);

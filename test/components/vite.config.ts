// The console's build with another beginning, and without what only a server needs.
import { resolve } from 'node:path';
import { mergeConfig, type Plugin } from 'vite';
import consoleConfig from '../../console/vite.config.ts';

const needed = (plugin: unknown) => (plugin as Plugin | null)?.name !== 'compressed-variants';

export default mergeConfig(
  { ...consoleConfig, plugins: consoleConfig.plugins?.filter(needed) },
  { build: { minify: false, rolldownOptions: { input: resolve(import.meta.dirname, 'main.ts') } } },
);

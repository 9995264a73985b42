import test from 'ava';
import { arrows, type Cruise, circles, filesPerRoom, upArrows } from '../../../../bin/lib/rooms.ts';

function cruise(imports: Record<string, readonly (string | { type: string })[]>): Cruise {
  return {
    modules: Object.entries(imports).map(([source, targets]) => ({
      source,
      dependencies: targets.map((target) => ({
        resolved: typeof target === 'string' ? target : target.type,
        dependencyTypes: typeof target === 'string' ? ['local'] : ['local', 'type-only'],
      })),
    })),
  };
}

test('a room may import values of lower rooms, and types of any', (t) => {
  const found = arrows(
    cruise({
      'services/a.ts': ['models/b.ts', 'runtime/c.ts', 'node_modules/d/index.js'],
      'models/b.ts': ['contract/e.ts', { type: 'services/a.ts' }],
      'runtime/c.ts': ['services/a.ts'],
    }),
  );
  t.deepEqual(upArrows(found), [{ from: 'runtime/c.ts', to: 'services/a.ts' }]);
});

test('files that reach each other by import of values are a circle', (t) => {
  const found = arrows(
    cruise({
      'bin/a.ts': ['bin/b.ts'],
      'bin/b.ts': ['bin/c.ts', 'bin/d.ts'],
      'bin/c.ts': ['bin/a.ts'],
      'bin/d.ts': ['bin/e.ts'],
      'bin/e.ts': [{ type: 'bin/d.ts' }],
      'bin/f.ts': ['bin/f.ts'],
    }),
  );
  t.deepEqual(circles(found), [['bin/a.ts', 'bin/b.ts', 'bin/c.ts'], ['bin/f.ts']]);
});

test('files are counted per room and folder', (t) => {
  const rooms = filesPerRoom(cruise({ 'models/a.ts': [], 'models/sites/b.ts': [], 'bin/c.ts': [], 'x/d.ts': [] }));
  t.deepEqual(
    rooms.map(({ room, files, folders }) => [room, files, Object.fromEntries(folders)]),
    [
      ['models', 2, { '.': 1, sites: 1 }],
      ['bin', 1, { '.': 1 }],
    ],
  );
});

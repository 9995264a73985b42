// One console process: `node bin/console.ts` with the variables of the README. Used by the launchers and by the image.
import '../services/run-console.ts';

export default {
  files: ['test/**/*.test.ts'],
  extensions: ['ts'],
  // A process per file: a test file may change its environment, and a leaked handle ends with its process.
  workerThreads: false,
  failWithoutAssertions: true,
  // Nothing within this time is a hang; a machine that is slow and busy is not.
  timeout: '10m',
};

// The package has no types of its own; tests use this one function.
declare module 'js-yaml' {
  const yaml: { safeLoadAll(text: string): unknown[] };
  export default yaml;
}

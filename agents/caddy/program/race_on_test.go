//go:build race

package program_test

// memoryFactor is how much more memory a build with the race detector may take: it keeps what each word was last used for.
const memoryFactor = 5

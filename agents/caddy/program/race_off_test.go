//go:build !race

package program_test

const memoryFactor = 1

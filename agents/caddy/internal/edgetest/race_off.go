//go:build !race

package edgetest

// UnderRace says that the race detector looks on.
const UnderRace = false

//go:build race

package edgetest

// UnderRace says that the race detector looks on: what computes takes some ten times as long, and what matters is that much
// happens at once, not that all of it happens.
const UnderRace = true

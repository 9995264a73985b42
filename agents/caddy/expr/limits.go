package expr

// Bounds of the language, as contract/expression/limits.ts has them.
const (
	maxDepth       = 64
	maxNodes       = 256
	maxSetValues   = 256
	maxStringBytes = 16_384
	// Of the name of a header, cookie or parameter.
	maxName = 64
	// Of the id of an IP list.
	maxListID          = 64
	maxFunctionNesting = 4
	// Of the result of a function, in bytes: a longer one fails the evaluation.
	maxResultBytes      = 8192
	maxRegex            = 256
	maxRepeat           = 1000
	maxWildcardBytes    = 1024
	maxStars            = 8
	maxReplacementBytes = 1024
	maxCaptures         = 8
	maxSubstring        = 65_536
	// Of numbers that the console can hold exactly.
	maxNumber = 1<<53 - 1
)

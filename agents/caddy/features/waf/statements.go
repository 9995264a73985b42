package waf

import (
	"regexp"
	"strings"
)

var (
	// statementBegin is the beginning of a statement of SQL after something that is no letter.
	statementBegin = regexp.MustCompile(`(?i)^([^A-Za-z_]+)(create|drop|rename|update) +([A-Za-z0-9_.@-]+)`)
	// sqlObjects are what statements create, drop and rename, and words that stand before that.
	sqlObjects = wordsOf("access aggregate algorithm analyzer any application assembly assertion asymmetric audit authorization automatic availability bitmap broker certificate " +
		"cast class clustered cluster collation column columnstore constraint context contract control conversion credential cryptographic database default definer dictionary " +
		"dimension directory disk diskgroup domain edition endpoint event extension external federation flashback foreign fulltext function global group hierarchy hint if index " +
		"indextype inmemory instance java json key language large library link local lockdown logfile login mask master materialized message method model multiset mining nicknam nickname " +
		"nonclustered noforce force operator or outline package partition permanent pfile plan pluggable policy prepare primary private proc procedure profile property public " +
		"publication queue recursive remote resource restore role rollback route row rule schema search secret security sequence server service session shadow sharded signature " +
		"snapshot spatial spfile sql statistics stogroup subscription symmetric synonym system table tables tablespace temp temporary text threshold transform trigger trusted type " +
		"undo unique unlogged usage user users user_defined variable vector view views virtual volatile warehouse workload wrapper xml xmlindex xsrobject editionable noneditionable to")
	setWord = regexp.MustCompile(`(?i)\bset\b`)
)

// withoutStatements returns a value without the verb at its beginning if that begins no statement of SQL: nothing in a
// database is created, dropped or renamed, and nothing is set.
func withoutStatements(value, _ string) string {
	found := statementBegin.FindStringSubmatchIndex(value)
	if found == nil || strings.ContainsAny(value[:found[3]], "\"'`;)") || strings.Contains(value, "/*") {
		return value
	}
	verb, object := strings.ToLower(value[found[4]:found[5]]), strings.ToLower(value[found[6]:found[7]])
	if verb == "update" && setWord.MatchString(value) || verb != "update" && sqlObjects[strings.TrimRight(object, ".-")] {
		return value
	}
	return value[:found[4]] + "x" + value[found[5]:]
}

package waf

import (
	"regexp"
	"strings"
)

var (
	// title is the first line of a manual: names of programs, a dash, and what they do.
	title = regexp.MustCompile(`^\s*([A-Za-z][\w.+-]*(?:, [A-Za-z][\w.+-]*)*) -{1,2} `)
	// leastTitle is how many words say what a program does.
	leastTitle = 3
	// doers are programs that do something with a dash and words: they run others, load something, show or change files.
	doers = wordsOf(`
		cat tac nl od xxd head tail less more strings rev sort cut tee dd cp mv ln rm rmdir shred install touch truncate sed awk gawk mawk nawk ed ex vi vim
		echo printf id who env printenv nohup nice ionice sudo su doas xargs exec eval command builtin time timeout watch strace ltrace setsid stdbuf chroot
		unshare nsenter busybox toybox parallel run-parts start-stop-daemon systemd-run ssh scp sftp rsync ftp tftp telnet nc ncat netcat socat curl wget fetch
		lynx links w3m perl python python2 python3 ruby php node nodejs lua tclsh expect gdb make gcc cc g++ source script at batch crontab kill killall pkill
		mail mailx sendmail openssl passwd login mount umount git svn docker kubectl find`)
)

// withoutTitles returns a value that is the title of a manual without the names in it. A program would take the dash for
// its input, and the words for files.
func withoutTitles(value, _ string) string {
	found := title.FindStringSubmatchIndex(value)
	if found == nil {
		return value
	}
	if strings.ContainsAny(value[found[1]:], ";|&") {
		return value
	}
	words := 0
	for line := range strings.SplitSeq(value[found[1]:], "\n") {
		if !isProse(line) {
			return value
		}
		words += len(strings.Fields(line))
	}
	if words < leastTitle {
		return value
	}
	for name := range strings.SplitSeq(value[found[2]:found[3]], ", ") {
		if name = strings.ToLower(name); doers[name] || strings.HasSuffix(name, "sh") {
			return value
		}
	}
	return value[:found[2]] + "x" + value[found[3]:]
}

// named is a word with a space and an opened parenthesis after it, which is not closed at once, or with a comma.
var named = regexp.MustCompile(`\b[A-Za-z][\w.+-]*([ \t]+\([^\s()]|,\s)`)

// withoutNamed returns a value without words before parentheses, which no shell takes after a command, and before commas,
// which are part of its name.
func withoutNamed(value, raw string) string {
	if value != raw {
		return value
	}
	return named.ReplaceAllString(value, "x$1")
}

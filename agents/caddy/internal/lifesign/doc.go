// Package lifesign tells the process that started this one that it lives, how far it has come, and what it died of. All goes
// over one descriptor that was inherited: a byte each second and one for each step, which no text has, and between them
// whatever the runtime prints when it gives up. No lock is taken for it.
//
// Takes no lock; silent unless `SVC_LIFE_FD` names a descriptor. What the runtime prints goes to the parent, logs to
// standard error.
package lifesign
